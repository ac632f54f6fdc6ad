#include "files/clock.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <set>

namespace cairn {
namespace {

TEST(SystemClock, ReturnsTheTimeOfDay) {
  const auto clock = make_system_clock();
  const std::int64_t before_s = std::time(nullptr);
  const std::int64_t now_s = clock->now_us() / 1'000'000;
  EXPECT_GE(now_s, before_s - 1);
  EXPECT_LE(now_s, std::time(nullptr) + 1);
}

TEST(SystemClock, SleepsAtLeastAsLongAsAsked) {
  const auto clock = make_system_clock();
  const std::int64_t start_us = clock->steady_us();
  clock->sleep_us(3000);
  EXPECT_GE(clock->steady_us() - start_us, 3000);
}

TEST(SystemClock, DrawsDifferentNumbers) {
  const auto one = make_system_clock();
  const auto other = make_system_clock();
  std::set<std::uint64_t> drawn;
  std::uint64_t all_bits = 0;
  for (int i = 0; i < 100; ++i)
    for (Clock* clock : {one.get(), other.get()}) {
      const std::uint64_t value = clock->random();
      drawn.insert(value);
      all_bits |= value;
    }
  EXPECT_EQ(drawn.size(), 200U);
  EXPECT_EQ(all_bits, ~std::uint64_t{0});
}

}  // namespace
}  // namespace cairn
