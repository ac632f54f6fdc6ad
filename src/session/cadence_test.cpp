#include "session/cadence.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr std::int64_t second_us = 1'000'000;
constexpr std::int64_t begin_us = 77 * second_us;  // a steady clock begins anywhere

TEST(Cadence, WithoutSettingsNothingIsEverDue) {
  Cadence cadence(Settings{}, begin_us);
  for (int call = 0; call < 100; ++call)
    EXPECT_FALSE(cadence.due(begin_us + call * 1000 * second_us));
}

TEST(Cadence, ByIntervalOfCallsWhateverWasMade) {
  Settings settings;
  settings.checkpoint_interval = 3;
  Cadence cadence(settings, begin_us);
  for (int call = 1; call <= 9; ++call) {
    EXPECT_EQ(cadence.due(begin_us), call % 3 == 0) << call;
    if (call == 4) cadence.made(begin_us, begin_us + 1);
  }
}

TEST(Cadence, BySecondsSinceTheStartOrTheLastEnd) {
  Settings settings;
  settings.checkpoint_seconds = 10;
  Cadence cadence(settings, begin_us);
  EXPECT_FALSE(cadence.due(begin_us + 10 * second_us - 1));
  EXPECT_TRUE(cadence.due(begin_us + 10 * second_us));
  EXPECT_TRUE(cadence.due(begin_us + 11 * second_us)) << "until one is made";
  cadence.made(begin_us + 11 * second_us, begin_us + 15 * second_us);
  EXPECT_FALSE(cadence.due(begin_us + 25 * second_us - 1));
  EXPECT_TRUE(cadence.due(begin_us + 25 * second_us));
  cadence.failed(begin_us + 30 * second_us);
  EXPECT_FALSE(cadence.due(begin_us + 35 * second_us)) << "a failed one is not repeated at once";
  EXPECT_TRUE(cadence.due(begin_us + 40 * second_us));
}

TEST(Cadence, ByOverheadOfTheMeanCost) {
  Settings settings;
  settings.checkpoint_overhead = 10;
  Cadence cadence(settings, begin_us);
  EXPECT_TRUE(cadence.due(begin_us)) << "the cost is not known yet";
  cadence.failed(begin_us);
  EXPECT_TRUE(cadence.due(begin_us)) << "and a failed one says nothing of it";
  std::int64_t end_us = begin_us + 2 * second_us;
  cadence.made(begin_us, end_us);  // 2 s, so 18 s make 10 %
  EXPECT_FALSE(cadence.due(end_us + 18 * second_us));
  EXPECT_TRUE(cadence.due(end_us + 18 * second_us + 1));
  end_us += 30 * second_us;
  cadence.made(end_us - 4 * second_us, end_us);  // 3 s in the mean, so 27 s
  EXPECT_FALSE(cadence.due(end_us + 27 * second_us));
  EXPECT_TRUE(cadence.due(end_us + 27 * second_us + 1));
}

}  // namespace
}  // namespace cairn
