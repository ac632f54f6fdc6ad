// Errors that occurred when no program had the file open.
#include "crfs/unreported_errors.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace cairn {
namespace {

TEST(UnreportedErrors, AreReturnedOnceOrKeptForTheEnd) {
  UnreportedErrors errors;
  EXPECT_EQ(errors.take(1, 2), 0);
  errors.add(1, 2, {"/a", -ENOSPC});
  errors.add(1, 3, {"/b", -EIO});
  EXPECT_EQ(errors.take(2, 2), 0);
  EXPECT_EQ(errors.take(1, 2), -ENOSPC);
  EXPECT_EQ(errors.take(1, 2), 0);
  const auto left = errors.all();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].file, "/b");
  EXPECT_EQ(left[0].error, -EIO);
}

TEST(UnreportedErrors, OfADirectoryAreReturnedTogether) {
  UnreportedErrors errors;
  errors.add(1, 2, {"/a/one", -ENOSPC});
  errors.add(1, 3, {"/a/b/two", -ENOSPC});
  errors.add(1, 4, {"/ab", -EIO});
  EXPECT_EQ(errors.take_below("/b/"), 0);
  EXPECT_EQ(errors.take_below("/a/"), -ENOSPC);
  EXPECT_EQ(errors.take_below("/a/"), 0);
  EXPECT_EQ(errors.take(1, 4), -EIO);
}

TEST(UnreportedErrors, ANewFileDoesNotGetErrorsOfAnOldFileWithItsNumber) {
  UnreportedErrors errors;
  errors.add(1, 2, {"/a", -ENOSPC});
  errors.leave_to_the_end(1, 2);
  EXPECT_EQ(errors.take(1, 2), 0);
  ASSERT_EQ(errors.all().size(), 1u);
  EXPECT_EQ(errors.all()[0].file, "/a");
}

}  // namespace
}  // namespace cairn
