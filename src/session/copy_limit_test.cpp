#include "session/copy_limit.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr std::int64_t second_us = 1'000'000;

TEST(CopyLimit, IsTheStatedRateOnlyIfTheCopyIsNearIt) {
  const auto limit_at = [](std::uint64_t bytes, std::uint64_t bytes_per_s) {
    return limit_of({10 * second_us, 0, bytes}, bytes_per_s, false);
  };
  EXPECT_EQ(limit_at(1000, 100), CopyLimit::rate);
  EXPECT_EQ(limit_at(800, 100), CopyLimit::rate);
  EXPECT_EQ(limit_at(799, 100), CopyLimit::prefix_directory);
  EXPECT_EQ(limit_at(0, 100), CopyLimit::prefix_directory);
  EXPECT_EQ(limit_at(1000, 0), CopyLimit::prefix_directory) << "there is none";
}

/// The rate holds while the rank works.
TEST(CopyLimit, IsWhatTakesMostOfTheTime) {
  const auto limit_after = [](std::int64_t rested_s, std::uint64_t bytes) {
    return limit_of({10 * second_us, rested_s * second_us, bytes}, 100, false);
  };
  EXPECT_EQ(limit_after(6, 400), CopyLimit::rests);
  EXPECT_EQ(limit_after(4, 600), CopyLimit::rate);
  EXPECT_EQ(limit_after(4, 400), CopyLimit::prefix_directory);
}

TEST(CopyLimit, IsNoRestWhileACallWaits) {
  EXPECT_EQ(limit_of({10 * second_us, 9 * second_us, 100}, 100, true), CopyLimit::rate);
  EXPECT_EQ(limit_of({10 * second_us, 9 * second_us, 100}, 0, true), CopyLimit::prefix_directory);
}

TEST(CopyLimit, IsNamedByTheSettingOrTheCallThatMakesIt) {
  Settings settings;
  const auto text = [&](CopyLimit limit) { return text_of(limit, settings, 2048); };
  EXPECT_EQ(text(CopyLimit::rate), "CAIRN_FLUSH_BANDWIDTH (2 KiB/s for each node)");
  settings.async_bytes_per_s = 2048;
  EXPECT_EQ(text(CopyLimit::rate), "SCR_FLUSH_ASYNC_BW (2 KiB/s for each node)");
  EXPECT_EQ(text(CopyLimit::prefix_directory), "the prefix directory");
  EXPECT_EQ(text(CopyLimit::none), "the prefix directory") << "all is copied, and not published";
  settings.async_percent = 25;
  EXPECT_EQ(text(CopyLimit::rests), "SCR_FLUSH_ASYNC_PERCENT (25 %)");
  for (const double percent : {0, 90}) {
    settings.async_percent = percent;
    EXPECT_EQ(text(CopyLimit::rests), "Cairn_Computing_end (the program communicates)") << percent;
  }
}

}  // namespace
}  // namespace cairn
