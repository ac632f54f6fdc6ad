// A job dies at each call, one after the other, between the begin of Complete and the end of the
// copy behind the program.
#include "async_deaths.hpp"

#include <gtest/gtest.h>

#include "support/faults.hpp"

namespace cairn::sim {
namespace {

/// So many calls lie between two deaths.
constexpr std::uint64_t stride = sanitized ? 7 : 1;

struct Sum {
  std::uint64_t deaths = 0;
  std::uint64_t whole = 0;  ///< the prefix directory had all parts
};

/// Until a run comes to its end before it could die.
Sum die_at_every_call(AsyncDeath death) {
  Sum sum;
  for (;; death.calls += stride) {
    const AsyncDeathOutcome outcome = simulate_async_death(death);
    EXPECT_EQ(outcome.failure, "")
        << "seed " << death.seed << ", after " << death.calls << " calls, node " << death.node;
    if (!outcome.has_died || !outcome.failure.empty()) return sum;
    ++sum.deaths;
    sum.whole += outcome.was_whole ? 1 : 0;
  }
}

/// There are deaths before and after the last part was copied.
void expect_both(const Sum& sum) {
  EXPECT_GT(sum.whole, 100 / stride);
  EXPECT_GT(sum.deaths - sum.whole, 100 / stride);
}

TEST(AsyncDeaths, AllProcessesDieAtAnyCall) {
  for (const bool is_drained : {false, true}) {
    AsyncDeath death;
    death.is_drained = is_drained;
    expect_both(die_at_every_call(death));
  }
}

TEST(AsyncDeaths, AllProcessesDieAtAnyCallAndAllCachesAreLost) {
  for (const bool is_drained : {false, true}) {
    AsyncDeath death;
    death.kind = AsyncDeath::Kind::job;
    death.is_drained = is_drained;
    death.seed = 2;
    expect_both(die_at_every_call(death));
  }
}

TEST(AsyncDeaths, ThePowerFailsAtAnyCall) {
  AsyncDeath death;
  death.kind = AsyncDeath::Kind::power;
  for (death.seed = 3; death.seed <= 4; ++death.seed) expect_both(die_at_every_call(death));
}

TEST(AsyncDeaths, ANodeIsLostAtAnyCall) {
  AsyncDeath death;
  death.kind = AsyncDeath::Kind::node;
  for (death.node = 0; death.node < 3; ++death.node) {
    death.seed = 5 + static_cast<std::uint64_t>(death.node);
    death.is_drained = death.node == 1;
    expect_both(die_at_every_call(death));
  }
}

}  // namespace
}  // namespace cairn::sim
