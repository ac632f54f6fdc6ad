#include "base/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace cairn {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(Code::bad_argument, "{} is odd", value);
  return value / 2;
}

Result<int> quarter(int value) {
  CAIRN_ASSIGN(const int once, half(value));
  CAIRN_ASSIGN(const int twice, half(once));
  return twice;
}

Status is_even(int value) {
  CAIRN_TRY(half(value));
  return {};
}

TEST(Error, TravelsThroughAssignAndTry) {
  EXPECT_EQ(*quarter(8), 2);
  const auto failed = quarter(6);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::bad_argument);
  EXPECT_EQ(failed.error().text, "3 is odd");
  EXPECT_TRUE(is_even(2));
  EXPECT_FALSE(is_even(3));
}

TEST(Error, ForADeadMountSaysHowToUnmountIt) {
  const Error dead = errno_error(ENOTCONN, "read", "/no/such/mount/file");
  EXPECT_EQ(dead.code, Code::io);
  EXPECT_NE(dead.text.find("fusermount3 -u /no/such/mount/file"), std::string::npos) << dead.text;
  EXPECT_EQ(remedy_for(dead, Storage::prefix), "") << "a second remedy would contradict";
}

TEST(Error, ErrnoErrorsHaveActionPathAndCause) {
  const Error full = errno_error(ENOSPC, "write", "/a/b");
  EXPECT_EQ(full.code, Code::no_space);
  EXPECT_EQ(full.text, "cannot write /a/b: No space left on device");
  EXPECT_EQ(errno_error(EDQUOT, "write", "x").code, Code::no_space);
  EXPECT_EQ(errno_error(ENOENT, "open", "x").code, Code::not_found);
  EXPECT_EQ(errno_error(ENOTDIR, "open", "x/y").code, Code::not_found);
  EXPECT_EQ(errno_error(EIO, "read", "x").code, Code::io);
}

TEST(Error, AFullFileSystemIsReportedWithItsFreeSpace) {
  const std::string there = ::testing::TempDir();
  for (const std::string& path : {there + "no such file", there}) {
    const std::string text = errno_error(ENOSPC, "write", path).text;
    EXPECT_NE(text.find(path + " ("), std::string::npos) << text;
    EXPECT_NE(text.find(" free): "), std::string::npos) << text;
  }
  EXPECT_EQ(errno_error(EIO, "write", there).text.find(" free"), std::string::npos);
  EXPECT_EQ(cause_of(errno_error(ENOSPC, "write", there)),
            cause_of(errno_error(ENOSPC, "write", "/dev/shm/f")));
}

TEST(Error, ErrorsOfFileOperationsHaveARemedy) {
  for (const int why : {EIO, ENOSPC, EDQUOT, ENOENT, ENOTDIR, ELOOP, EACCES}) {
    const Error error = errno_error(why, "open", "/a/b");
    EXPECT_TRUE(concerns_files(error)) << error.text;
    for (const Storage storage : {Storage::cache, Storage::prefix})
      EXPECT_NE(remedy_for(error, storage), "") << error.text;
    EXPECT_EQ(remedy_for(error, Storage::prefix).find("SCR_CACHE_BASE"), std::string::npos);
  }
  const Error unknown{Code::not_found, "there is no dataset x in /prefix", -1};
  EXPECT_FALSE(concerns_files(unknown));
  EXPECT_EQ(remedy_for(unknown, Storage::cache), "") << "it is the caller's name that is wrong";
}

TEST(Error, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(Code::not_copied); ++code)
    EXPECT_NE(name_of(static_cast<Code>(code)), "unknown") << code;
}

TEST(Error, TheCauseIsEqualForTheSameReason) {
  Error one = errno_error(ENOSPC, "write", "/p/a");
  Error other = errno_error(ENOSPC, "create", "/p/b");
  other.text += " (rank 3 on n1)";
  EXPECT_EQ(cause_of(one), cause_of(other));
  EXPECT_NE(cause_of(one), cause_of(errno_error(EROFS, "write", "/p/a")));
}

}  // namespace
}  // namespace cairn
