// Sets of many members, and members with much: what small sets cannot show.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "files/passing_files.hpp"
#include "redundancy/set_on_disk.hpp"

namespace cairn {
namespace {

/// One file per member.
std::vector<std::vector<std::size_t>> unequal_members(int members, std::size_t largest) {
  std::vector<std::vector<std::size_t>> sizes;
  for (int member = 0; member < members; ++member)
    sizes.push_back({static_cast<std::size_t>(member * 7919) % 5000});
  sizes[static_cast<std::size_t>(members) / 3] = {largest};
  return sizes;
}

std::vector<bool> lost_of(int members, const std::vector<int>& lost) {
  std::vector<bool> marks(static_cast<std::size_t>(members));
  for (const int member : lost) marks[static_cast<std::size_t>(member)] = true;
  return marks;
}

TEST(LargeSet, EightOf64AreRebuiltByReedSolomonAndNineAreRefused) {
  constexpr int members = 64;
  TemporaryFolder base("/dev/shm");
  std::vector<std::vector<std::size_t>> sizes;  // unequal, but each with a block in every column
  for (std::size_t member = 0; member < members; ++member) sizes.push_back({16'501 + 4 * member});
  SetOnDisk set(base.path(), sizes, {Scheme::rs, 8, 1});
  set.protect_all(Team::Mode::buffered);
  std::vector<int> some = {0, 1, 2, 21, 40, 41, 62, 63};
  ASSERT_TRUE(survives(SetLayout(set.record(0).encoding), lost_of(members, some)));
  lose(set, lost_of(members, some), base / "aside");
  some.push_back(33);
  ASSERT_FALSE(survives(SetLayout(set.record(0).encoding), lost_of(members, some)));
  lose(set, lost_of(members, some), base / "aside");
  set.expect_intact();
}

TEST(LargeSet, PartnersThreeApartSurviveTheLossOfNeighbours) {
  constexpr int members = 17;
  TemporaryFolder base("/dev/shm");
  SetOnDisk set(base.path(), unequal_members(members, 3 * block_bytes + 1),
                {Scheme::partner, 2, 3});
  set.protect_all(Team::Mode::buffered);
  const SetLayout layout(set.record(0).encoding);
  const std::vector<int> runs_of_three = {0, 1, 2, 9, 10, 11};
  const std::vector<int> with_all_copies = {4, 7, 10};
  const std::vector<int> round_the_end = {15, 1, 4};
  ASSERT_TRUE(survives(layout, lost_of(members, runs_of_three)));
  for (const auto& beyond : {with_all_copies, round_the_end})
    ASSERT_FALSE(survives(layout, lost_of(members, beyond)));
  for (const auto& lost : {runs_of_three, with_all_copies, round_the_end})
    lose(set, lost_of(members, lost), base / "aside");
  set.expect_intact();
}

// --- above 4 GiB ---

/// Leaves zeros out, where nothing was written before: so that gigabytes of them take no room.
class HoleyFile final : public File {
 public:
  explicit HoleyFile(std::unique_ptr<File> inner) : inner_(std::move(inner)) {}

  Status read_at(std::uint64_t offset, MutableBytes buffer) override {
    return inner_->read_at(offset, buffer);
  }
  Status write_at(std::uint64_t offset, Bytes data) override {
    const auto is_zero = [](std::byte byte) { return byte == std::byte{}; };
    if (!std::all_of(data.begin(), data.end(), is_zero)) return inner_->write_at(offset, data);
    CAIRN_ASSIGN(const std::uint64_t size, inner_->size());
    const std::uint64_t end = offset + data.size();
    return end > size ? inner_->resize(end) : Status{};
  }
  Status resize(std::uint64_t bytes) override { return inner_->resize(bytes); }
  Status sync() override { return inner_->sync(); }
  Status sync_all() override { return inner_->sync_all(); }
  Status set_attributes(std::uint32_t mode, const FileTimes& times) override {
    return inner_->set_attributes(mode, times);
  }
  Result<std::uint64_t> size() override { return inner_->size(); }

 private:
  std::unique_ptr<File> inner_;
};

/// Reads holes without the system, which would keep a page of zeros for each.
class HoleyView final : public View {
 public:
  HoleyView(std::unique_ptr<View> inner, const std::string& path)
      : inner_(std::move(inner)), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~HoleyView() override { ::close(descriptor_); }
  HoleyView(const HoleyView&) = delete;
  HoleyView& operator=(const HoleyView&) = delete;

  std::uint64_t size() const override { return inner_->size(); }
  Result<Bytes> at(std::uint64_t offset, std::size_t length, MutableBytes scratch) override {
    const auto end = static_cast<off_t>(offset + length);
    const off_t data = ::lseek(descriptor_, static_cast<off_t>(offset), SEEK_DATA);
    const bool hole = data >= end || (data < 0 && errno == ENXIO && offset + length <= size());
    if (!hole || scratch.size() < length) return inner_->at(offset, length, scratch);
    std::fill_n(scratch.begin(), length, std::byte{});
    return scratch.first(length);
  }

 private:
  std::unique_ptr<View> inner_;
  int descriptor_;
};

class HoleyFiles final : public PassingFiles {
 public:
  HoleyFiles() : PassingFiles(make_posix_files()) {}

  Result<std::unique_ptr<File>> open_for_update(const std::string& path) override {
    CAIRN_ASSIGN(auto file, PassingFiles::open_for_update(path));
    return std::make_unique<HoleyFile>(std::move(file));
  }
  Result<std::unique_ptr<File>> create(const std::string& path, std::uint32_t mode) override {
    CAIRN_ASSIGN(auto file, PassingFiles::create(path, mode));
    return std::make_unique<HoleyFile>(std::move(file));
  }
  Result<std::unique_ptr<View>> view(const std::string& path) override {
    CAIRN_ASSIGN(auto opened, PassingFiles::view(path));
    return std::make_unique<HoleyView>(std::move(opened), path);
  }
};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

/// A file of zeros but for some marks: its beginning, on both sides of 4 GiB, and its end.
class MarkedFile {
 public:
  static constexpr std::uint64_t bytes = (std::uint64_t{4} << 30) + (std::uint64_t{1} << 20) + 1;

  static void make(const std::string& path) {
    std::filesystem::resize_file(path, bytes);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    for (const auto& [offset, mark] : marks)
      file.seekp(static_cast<std::streamoff>(offset)).put(mark);
    ASSERT_TRUE(file.good()) << path;
  }

  static void expect(const std::string& path) {
    ASSERT_EQ(std::filesystem::file_size(path), bytes);
    std::ifstream file(path, std::ios::binary);
    for (const auto& [offset, mark] : marks)
      EXPECT_EQ(file.seekg(static_cast<std::streamoff>(offset)).get(), mark) << offset;
  }

 private:
  static constexpr std::pair<std::uint64_t, char> marks[] = {{0, 'a'},
                                                             {(std::uint64_t{4} << 30) - 1, 'b'},
                                                             {std::uint64_t{4} << 30, 'c'},
                                                             {bytes - 1, 'd'}};
};

TEST(LargeSet, AFileAbove4GiBIsRebuiltByXor) {
  if (sanitized) GTEST_SKIP() << "computes with 12 GiB";
  constexpr int owner = 1;
  TemporaryFolder base("/tmp");  // not memory, so that reading holes takes none
  SetOnDisk set(base.path(), {{10}, {0}, {5000}, {1 << 20}, {20}, {0}});
  MarkedFile::make(set.path(owner, 0));
  set.record(owner).files[0].size = MarkedFile::bytes;
  for (int member = 0; member < set.members(); ++member)
    set.record(member).encoding.block_bytes = 1 << 20;
  const auto make_files = [] { return std::make_unique<HoleyFiles>(); };
  set.protect_all(Team::Mode::buffered, make_files);
  EXPECT_EQ(std::filesystem::file_size(set.parity(owner)), (MarkedFile::bytes + 4) / 5);
  std::filesystem::remove_all(set.folder(owner).path);
  const auto healed = set.heal_all(false, make_files);
  ASSERT_TRUE(healed) << healed.error().text;
  MarkedFile::expect(set.path(owner, 0));
}

}  // namespace
}  // namespace cairn
