// Which data of a step go past the page cache. On a disk; other tests write to memory.

#include "files/page_cache.hpp"
#include "rbio/part_file.hpp"
#include "rbio/test_series.hpp"

namespace cairn::rbio {
namespace {

class DirectWritesTest : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    if (!takes_direct_writes(folder_.path()))
      GTEST_SKIP() << "the file system of " << folder_.path() << " has no O_DIRECT";
  }

  static Shape shape_of(int ranks, int group_size) {
    Shape shape;
    shape.ranks = ranks;
    shape.ranks_per_node = ranks;
    shape.options.mode = GetParam();
    shape.options.group_size = group_size;
    shape.options.files = 1;
    return shape;
  }
  /// Of the file of a step that is written now. Nothing has read it yet.
  std::size_t pages_left_in_cache(const Shape& shape) {
    write_steps(*files_, directory_, shape, {1});
    return pages_in_cache(path_);
  }
  PartIndex index() {
    const auto file = files_->open(path_).value();
    return decode_index(read_index_bytes(*file, path_).value(), path_).value();
  }
  std::size_t all_pages() { return pages_of(files_->open(path_).value()->size().value()); }

  /// Of the pieces of a group: the pages that no other bytes share.
  static std::size_t whole_pages(const PartIndex& index, std::size_t field, int first_rank,
                                 int group_size) {
    const auto first = index.entries.begin() + first_rank;
    const std::uint64_t begin = first->pieces[field].offset;
    std::uint64_t end = begin;
    for (auto entry = first; entry != index.entries.end() && entry < first + group_size; ++entry)
      end += entry->pieces[field].bytes;
    if (end - begin < least_placed_bytes) return 0;
    return end / cache_page_bytes - pages_of(begin);
  }
  static std::size_t whole_pages(const PartIndex& index, const Shape& shape) {
    std::size_t pages = 0;
    for (std::size_t field = 0; field < index.header.fields.size(); ++field)
      for (int rank = 0; rank < shape.ranks; rank += shape.options.group_size)
        pages += whole_pages(index, field, rank, shape.options.group_size);
    return pages;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Files> files_ = make_posix_files();
  std::string directory_ = folder_ / "series";
  std::string path_ = directory_ + "/step.1/" + part_name(0);
};

TEST_P(DirectWritesTest, WholePagesOfLargeFieldsAreNotInThePageCache) {
  // One writer, and three that share a file: two of these begin somewhere in a page.
  for (const int group_size : {5, 2}) {
    SCOPED_TRACE(fmt::format("groups of {}", group_size));
    ASSERT_TRUE(remove_all(*files_, directory_));
    const Shape shape = shape_of(5, group_size);
    const std::size_t left = pages_left_in_cache(shape);
    const std::size_t direct = whole_pages(index(), shape);
    EXPECT_GT(direct, all_pages() / 2);
    EXPECT_LE(left, all_pages() - direct);
    expect_restored(*files_, directory_, shape, 1);
  }
}

TEST_P(DirectWritesTest, WithoutThemAllPagesAreInThePageCache) {
  Shape shape = shape_of(5, 2);
  shape.options.is_direct = false;
  const std::size_t left = pages_left_in_cache(shape);
  EXPECT_EQ(left, all_pages());
  expect_restored(*files_, directory_, shape, 1);
}

TEST_P(DirectWritesTest, BothWaysGiveTheSameBytes) {
  Shape shape = shape_of(5, 2);
  write_steps(*files_, folder_ / "direct", shape, {1});
  shape.options.is_direct = false;
  write_steps(*files_, folder_ / "cached", shape, {1});
  const std::string name = "/step.1/" + part_name(0);
  const auto direct = read_file(*files_, folder_ / "direct" + name, 1 << 30);
  const auto cached = read_file(*files_, folder_ / "cached" + name, 1 << 30);
  ASSERT_TRUE(direct && cached);
  EXPECT_TRUE(*direct == *cached);
}

INSTANTIATE_TEST_SUITE_P(Modes, DirectWritesTest, testing::Values(Mode::threaded, Mode::sync),
                         name_of_mode);

}  // namespace
}  // namespace cairn::rbio
