// Which files of datasets in the prefix directory programs may read.
#include "mounted/checked_files.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include "support/job_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

/// Dataset 2 is in the prefix directory. One block has all files of a rank.
class CheckedFilesTest : public testing::Test {
 protected:
  CheckedFilesTest() { bed_.write_and_finalize({1, 2}); }

  bool is_good(int number) {
    return checked_.is_good(fs::path(path(number)).lexically_relative(bed_.settings.prefix), false);
  }
  /// Another first byte. `later`: as a program does, and not as damage.
  void change(int number, bool later) {
    const auto time = fs::last_write_time(path(number));
    std::fstream file(path(number), std::ios::in | std::ios::out);
    file << '#';
    file.close();
    fs::last_write_time(path(number), later ? time + std::chrono::seconds(5) : time);
  }
  std::string path(int number) const { return bed_.file(2, 0, number); }

  PrefixJobBed bed_;
  CheckedFiles checked_{bed_.settings.prefix, bed_.log()};
};

TEST_F(CheckedFilesTest, ADamagedBlockIsHandedOutOfNoFile) {
  ASSERT_TRUE(is_good(0) && is_good(1));
  change(0, false);
  EXPECT_FALSE(is_good(0));
  CheckedFiles again(bed_.settings.prefix, bed_.log());
  EXPECT_FALSE(again.is_good("ckpt.2/rank 0.1", false));
  EXPECT_TRUE(again.is_good("ckpt.2/rank 1.0", false));
}

TEST_F(CheckedFilesTest, AFileMayBeReadAlthoughAnotherOneOfItsBlockWasWrittenAgain) {
  change(0, true);
  EXPECT_TRUE(is_good(0));
  EXPECT_TRUE(is_good(1));
  EXPECT_FALSE(bed_.logs("programs cannot read")) << bed_.log_text();
}

TEST_F(CheckedFilesTest, DamageIsFoundWhereNoFileOfTheBlockWasWrittenAgain) {
  change(1, false);
  EXPECT_FALSE(is_good(0));
  EXPECT_FALSE(is_good(1));
  EXPECT_TRUE(bed_.logs("programs cannot read")) << bed_.log_text();
}

}  // namespace
}  // namespace cairn
