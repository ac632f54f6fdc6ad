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

void write_file(StepTracker& tracker, std::int64_t step, const std::string& shape) {
  tracker.opened({step}, shape);
  tracker.closed({step}, shape);
}

TEST(StepTracker, AStepThatWasGivenUpShowsTheFilesThatTheRankHas) {
  StepTracker tracker;
  write_file(tracker, 1, "a");
  tracker.lost(1, Loss::overwritten);
  EXPECT_EQ(tracker.report(1).loss, Loss::overwritten);
  tracker.decided(1, Decision::given_up);
  EXPECT_EQ(tracker.report(2).progress, Progress::working);
  write_file(tracker, 2, "a");
  EXPECT_EQ(tracker.report(2).progress, Progress::quiet);
}

TEST(StepTracker, AFileThatComesAfterItsStepWasGivenUpIsWaitedForInTheNextStep) {
  StepTracker tracker;
  write_file(tracker, 1, "a");
  tracker.decided(1, Decision::given_up);
  tracker.opened({1}, "b");  // it is not known to be closed when the next step begins
  write_file(tracker, 2, "a");
  EXPECT_EQ(tracker.report(2).progress, Progress::working);
  write_file(tracker, 2, "b");
  EXPECT_EQ(tracker.report(2).progress, Progress::quiet);
}

TEST(StepTracker, AFileThatIsLeftOutIsWaitedForInTheNextStep) {
  StepTracker tracker;
  write_file(tracker, 1, "a");
  tracker.left_out({1}, "b");
  EXPECT_EQ(tracker.report(1).loss, Loss::left_out);
  tracker.decided(1, Decision::given_up);
  tracker.left_out({1}, "c");
  for (const char* shape : {"a", "b"}) {
    write_file(tracker, 2, shape);
    EXPECT_EQ(tracker.report(2).progress, Progress::working) << shape;
  }
  write_file(tracker, 2, "c");
  EXPECT_EQ(tracker.report(2).progress, Progress::quiet);
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

TEST(StepTracker, AFileOfAStepBeforeTheDecidedOneIsWaitedForInTheNextStep) {
  StepTracker tracker;
  write_file(tracker, 1, "late");
  write_file(tracker, 2, "a");
  tracker.report(2);
  tracker.decided(2, Decision::certain);
  write_file(tracker, 3, "a");
  EXPECT_EQ(tracker.report(3).progress, Progress::working);
  write_file(tracker, 3, "late");
  EXPECT_EQ(tracker.report(3).progress, Progress::quiet);
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
