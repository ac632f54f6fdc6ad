#include "transfer/throttle.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

class SleepingClock final : public Clock {
 public:
  std::int64_t now_us() override { return steady; }
  std::int64_t steady_us() override { return steady; }
  void sleep_us(std::int64_t us) override { steady += us; }
  std::uint64_t random() override { return 0; }
  std::int64_t steady = 5'000'000;
};

TEST(Throttle, KeepsToItsRate) {
  SleepingClock clock;
  Throttle throttle(clock, 1'000'000);
  for (int i = 0; i < 100; ++i) throttle.take(100'000);
  // What was saved up at the start goes at once; the last piece is on its way.
  EXPECT_GE(clock.steady - 5'000'000, 9'700'000);
  EXPECT_LE(clock.steady - 5'000'000, 10'000'000);
}

TEST(Throttle, TimeThatWasNotUsedIsNotSavedUp) {
  SleepingClock clock;
  Throttle throttle(clock, 1'000'000);
  throttle.take(1);
  clock.steady += 60'000'000;
  const std::int64_t from = clock.steady;
  for (int i = 0; i < 10; ++i) throttle.take(1'000'000);
  EXPECT_GE(clock.steady - from, 8'800'000);
}

TEST(Throttle, WithoutARateNobodyWaits) {
  SleepingClock clock;
  Throttle throttle(clock, 0);
  throttle.take(std::uint64_t{1} << 50);
  EXPECT_EQ(clock.steady, 5'000'000);
}

/// At a byte in each second, the second one would go after a second.
TEST(Throttle, NobodyWaitsLongerThanToItsEnd) {
  SleepingClock clock;
  Throttle throttle(clock, 1, nullptr, nullptr, 5'300'000);
  throttle.take(1);
  EXPECT_FALSE(throttle.is_stopped());
  throttle.take(1);
  EXPECT_TRUE(throttle.is_stopped());
  EXPECT_EQ(clock.steady, 5'300'000);
}

}  // namespace
}  // namespace cairn
