#include "files/unmapped_files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

constexpr std::size_t block_bytes = 4096;

/// A file of four blocks in main memory, where `inner` maps.
class UnmappedFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!*inner_->is_memory(path_)) GTEST_SKIP() << "nothing is mapped here";
  }

  Result<Bytes> read_block(std::uint64_t block) {
    return (*view_)->at(block * block_bytes, block_bytes, scratch_);
  }
  bool is_mapped(const Result<Bytes>& block) const { return block->data() != scratch_.data(); }

  const TemporaryFolder folder_{std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : ""};
  const std::string path_ = folder_ / "f";
  const std::unique_ptr<Files> inner_ = make_posix_files();
  bool may_map_ = false;
  std::stop_source stop_;
  std::uint64_t announced_bytes_ = 0;
  UnmappedFiles files_{*inner_, stop_.get_token(),
                       [this](std::uint64_t bytes) { announced_bytes_ += bytes; },
                       [this] { return may_map_; }};
  Blob scratch_ = Blob(block_bytes);
  const Result<std::unique_ptr<View>> view_{[this] {
    std::ofstream(path_) << std::string(4 * block_bytes, 'x');
    return files_.view(path_);
  }()};
};

TEST_F(UnmappedFilesTest, AViewIsMappedFromWhenItMayBe) {
  const auto first = read_block(0);
  ASSERT_TRUE(first);
  EXPECT_FALSE(is_mapped(first));
  may_map_ = true;
  const auto second = read_block(1);
  ASSERT_TRUE(second);
  EXPECT_TRUE(is_mapped(second));
  EXPECT_EQ(second->front(), std::byte{'x'});
  EXPECT_EQ(announced_bytes_, 2 * block_bytes);
}

TEST_F(UnmappedFilesTest, AFileThatWasCutBeforeItIsMappedIsAnError) {
  ASSERT_TRUE(read_block(0));
  std::filesystem::resize_file(path_, 2 * block_bytes);
  may_map_ = true;
  EXPECT_TRUE(read_block(1));
  const auto cut = read_block(2);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Code::io);
}

TEST_F(UnmappedFilesTest, NothingIsReadOnceItIsToStop) {
  for (const bool maps : {false, true}) {
    may_map_ = maps;
    ASSERT_TRUE(read_block(0));
  }
  stop_.request_stop();
  EXPECT_FALSE(read_block(1));
}

}  // namespace
}  // namespace cairn
