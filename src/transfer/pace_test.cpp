#include "transfer/pace.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "transfer/throttle.hpp"

namespace cairn {
namespace {

/// Calls `at_sleep` before each sleep: what the program does meanwhile.
class PacedClock final : public Clock {
 public:
  std::int64_t now_us() override { return steady; }
  std::int64_t steady_us() override { return steady; }
  void sleep_us(std::int64_t us) override {
    if (at_sleep) at_sleep();
    steady += us;
  }
  std::uint64_t random() override { return 0; }

  std::int64_t steady = 5'000'000;
  std::function<void()> at_sleep;
};

/// How long it takes until it may work.
std::int64_t wait_us(PacedClock& clock, Pace& pace) {
  const std::int64_t from_us = clock.steady;
  pace.wait_for_turn();
  return clock.steady - from_us;
}

// --- hints ---

TEST(Pace, WithoutHintsNothingWaits) {
  PacedClock clock;
  Pace pace(clock, 0);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(wait_us(clock, pace), 0);
    clock.steady += 50'000;
  }
}

TEST(Pace, WorkGoesOnWhileTheProgramComputes) {
  PacedClock clock;
  Pace pace(clock, 0);
  pace.begin_computing();
  EXPECT_EQ(wait_us(clock, pace), 0);
  clock.steady += 3'600'000'000;
  EXPECT_EQ(wait_us(clock, pace), 0);
}

TEST(Pace, WorkStandsBackUntilTheProgramComputes) {
  PacedClock clock;
  Pace pace(clock, 0);
  pace.begin_computing();
  pace.end_computing();
  clock.at_sleep = [&, begins = clock.steady + 300'000] {
    if (clock.steady >= begins) pace.begin_computing();
  };
  const std::int64_t waited_us = wait_us(clock, pace);
  EXPECT_GE(waited_us, 300'000);
  EXPECT_LE(waited_us, 310'000);
}

TEST(Pace, AHintThatIsASecondOldSaysNothing) {
  PacedClock clock;
  Pace pace(clock, 0);
  pace.end_computing();
  const std::int64_t waited_us = wait_us(clock, pace);
  EXPECT_GE(waited_us, 990'000);
  EXPECT_LE(waited_us, 1'010'000);
  clock.steady += 60'000'000;
  EXPECT_EQ(wait_us(clock, pace), 0);
}

/// The program computes for so short times that the thread never sees one.
TEST(Pace, WorkPassesAfterASecondWhateverTheHintsAre) {
  PacedClock clock;
  Pace pace(clock, 0);
  const auto hint = [&] {
    pace.begin_computing();
    pace.end_computing();
  };
  hint();
  clock.at_sleep = hint;
  const std::int64_t waited_us = wait_us(clock, pace);
  EXPECT_GE(waited_us, 990'000);
  EXPECT_LE(waited_us, 1'010'000);
  int blocks = 0;
  for (const std::int64_t from_us = clock.steady; clock.steady < from_us + 10'000'000; ++blocks) {
    pace.wait_for_turn();
    clock.steady += 1'000;
  }
  EXPECT_GE(blocks, 1'500) << "a fifth of the time";
  EXPECT_LE(blocks, 2'600);
}

TEST(Pace, NothingHoldsWorkBackThatIsWaitedFor) {
  PacedClock clock;
  Pace pace(clock, 0.01);
  pace.end_computing();
  {
    const Pace::Lifted outer(pace);
    { const Pace::Lifted inner(pace); }
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(wait_us(clock, pace), 0);
      clock.steady += 10'000;
    }
  }
  EXPECT_GT(wait_us(clock, pace), 500'000);
}

TEST(Pace, AWaitThatBeginsWhileTheThreadStandsBackWakesIt) {
  PacedClock clock;
  Pace pace(clock, 0);
  std::unique_ptr<Pace::Lifted> lifted;
  pace.end_computing();
  clock.at_sleep = [&] {
    if (clock.steady > 5'100'000) lifted = std::make_unique<Pace::Lifted>(pace);
  };
  EXPECT_LE(wait_us(clock, pace), 110'000);
}

// --- the share of the time ---

/// Of ten seconds, how many are spent on pieces of so many microseconds.
double worked_s(double share, std::int64_t piece_us) {
  PacedClock clock;
  Pace pace(clock, share);
  std::int64_t worked_us = 0;
  for (const std::int64_t from_us = clock.steady; clock.steady < from_us + 10'000'000;) {
    pace.wait_for_turn();
    clock.steady += piece_us;
    worked_us += piece_us;
  }
  return static_cast<double>(worked_us) * 1e-6;
}

TEST(Pace, WorkTakesItsShareOfTheTime) {
  for (const std::int64_t piece_us : {10, 200, 5'000, 100'000}) {
    EXPECT_NEAR(worked_s(0.25, piece_us), 2.5, 0.2) << piece_us;
    EXPECT_NEAR(worked_s(0.9, piece_us), 9.0, 0.2) << piece_us;
    EXPECT_GE(worked_s(0, piece_us), 10.0) << piece_us;
    EXPECT_GE(worked_s(1, piece_us), 10.0) << piece_us;
  }
}

TEST(Pace, RestThatWasNotOwedIsNotSavedUp) {
  PacedClock clock;
  Pace pace(clock, 0.5);
  pace.wait_for_turn();
  pace.stop_working();
  clock.steady += 60'000'000;
  const std::int64_t from_us = clock.steady;
  for (int i = 0; i < 100; ++i) {
    pace.wait_for_turn();
    clock.steady += 10'000;
  }
  EXPECT_NEAR(static_cast<double>(clock.steady - from_us), 2e6, 2e5);
}

TEST(Pace, WorkAtTheEndOfAStepIsOwedToo) {
  PacedClock clock;
  Pace pace(clock, 0.5);
  pace.wait_for_turn();
  clock.steady += 400'000;  // a sync, say, during which nothing asks
  pace.stop_working();
  EXPECT_NEAR(static_cast<double>(wait_us(clock, pace)), 4e5, 2e4);
}

TEST(Pace, CountsHowLongWorkStandsBack) {
  for (const double share : {0.0, 0.25}) {
    PacedClock clock;
    Pace pace(clock, share);
    pace.wait_for_turn();
    const std::int64_t before_us = pace.rested_us();
    std::int64_t waited_us = 0;
    for (int i = 0; i < 10; ++i) {
      clock.steady += 50'000;
      pace.end_computing();
      waited_us += wait_us(clock, pace);
    }
    EXPECT_GT(waited_us, 1'000'000) << share;
    EXPECT_EQ(pace.rested_us() - before_us, waited_us) << share;
  }
}

TEST(Pace, AThrottleKeepsToIt) {
  PacedClock clock;
  Pace pace(clock, 0);
  Throttle throttle(clock, 0, nullptr, &pace);
  pace.end_computing();
  const std::int64_t from_us = clock.steady;
  throttle.take(1);
  EXPECT_GE(clock.steady - from_us, 990'000);
}

}  // namespace
}  // namespace cairn
