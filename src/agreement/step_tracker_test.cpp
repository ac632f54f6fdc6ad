#include "agreement/step_tracker.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(StepTracker, GoesFromOpenToQuietToPassed) {
  StepTracker tracker;
  EXPECT_EQ(tracker.report(1).progress, Progress::quiet);  // as far as it knows, it writes none
  tracker.opened({1}, "a");
  EXPECT_EQ(tracker.report(1).progress, Progress::open);
  tracker.closed({1}, "a");
  EXPECT_EQ(tracker.report(1).progress, Progress::working);  // which files it has is not known yet
  tracker.decided(1, Decision::certain);
  EXPECT_EQ(tracker.report(2).progress, Progress::working);
  tracker.opened({2}, "a");
  tracker.closed({2}, "a");
  EXPECT_EQ(tracker.report(2).progress, Progress::quiet);
  tracker.opened({3}, "a");
  EXPECT_EQ(tracker.report(2).progress, Progress::passed);
}

TEST(StepTracker, HasAFileOpenUntilItIsClosedAsOftenAsOpened) {
  StepTracker tracker;
  tracker.opened({1}, "a");
  tracker.opened({1}, "a");
  tracker.closed({1}, "a");
  EXPECT_EQ(tracker.report(1).progress, Progress::open);
}

TEST(StepTracker, OtherFilesThanUsualAreNoEndOfAStep) {
  StepTracker tracker;
  tracker.opened({1}, "a");
  tracker.closed({1}, "a");
  tracker.decided(1, Decision::certain);
  tracker.opened({2}, "b");
  tracker.closed({2}, "b");
  EXPECT_EQ(tracker.report(2).progress, Progress::working);
}

TEST(StepTracker, AStepThatWasCutShortDoesNotShowWhichFilesTheRankHas) {
  StepTracker tracker;
  tracker.opened({1}, "a");
  tracker.closed({1}, "a");
  tracker.decided(1, Decision::cut_short);  // "b" would have come next
  EXPECT_EQ(tracker.report(2).progress, Progress::working);
  tracker.opened({2}, "a");
  tracker.closed({2}, "a");
  EXPECT_EQ(tracker.report(2).progress, Progress::working);
}

TEST(StepTracker, AFileOfAStepBeforeTheDecidedOneIsLate) {
  StepTracker tracker;
  tracker.opened({1}, "a");
  tracker.closed({1}, "a");
  tracker.opened({2}, "a");
  tracker.report(1);
  tracker.report(2);
  tracker.decided(2, Decision::certain);
  EXPECT_EQ(tracker.oldest_late(), 1);
  EXPECT_FALSE(tracker.oldest_undecided());
}

TEST(StepTracker, AFileThatIsOpenedAfterTheReportIsLate) {
  StepTracker tracker;
  tracker.report(1);
  tracker.opened({1}, "a");
  tracker.decided(1, Decision::certain);
  EXPECT_EQ(tracker.oldest_late(), 1);
  tracker.closed({1}, "a");
  EXPECT_EQ(tracker.report(2).progress, Progress::working);  // it may be late again
}

}  // namespace
}  // namespace cairn
