// A job, or a process of it, dies at each call, one after the other, between the begin of Complete
// and the end of the copy behind the program; and so do the drains of a dead job. EVERY_DEATH=1: at
// each call, as in `make soak`; else at each second one.
#include "async_deaths.hpp"

#include <gtest/gtest.h>

#include "support/every_death.hpp"
#include "support/faults.hpp"

namespace cairn::sim {
namespace {

/// So many calls lie between two deaths.
std::uint64_t stride() {
  if (tries_every_death()) return 1;
  return sanitized ? 7 : 2;
}

struct Sum {
  std::uint64_t deaths = 0;
  std::uint64_t whole = 0;  ///< the prefix directory had all parts

  Sum& operator+=(const Sum& other) {
    deaths += other.deaths;
    whole += other.whole;
    return *this;
  }
};

/// Until a run, or its drains, come to their end before they could die.
Sum die_at_every_call(AsyncDeath death, std::uint64_t AsyncDeath::*calls = &AsyncDeath::calls) {
  Sum sum;
  for (;; death.*calls += stride()) {
    const AsyncDeathOutcome outcome = simulate_async_death(death);
    EXPECT_EQ(outcome.failure, "")
        << "seed " << death.seed << ", after " << death.calls << " calls, node " << death.node
        << ", drains after " << death.drain_calls;
    if (!outcome.has_died || !outcome.failure.empty()) return sum;
    ++sum.deaths;
    sum.whole += outcome.was_whole ? 1 : 0;
  }
}

/// There are deaths before and after the last part was copied.
void expect_both(const Sum& sum) {
  EXPECT_GT(sum.whole, 100 / stride());
  EXPECT_GT(sum.deaths - sum.whole, 100 / stride());
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

/// Drains follow the death on one of the nodes.
void die_on_each_node(AsyncDeath death, int drained) {
  const std::uint64_t first_seed = death.seed;
  for (death.node = 0; death.node < 3; ++death.node) {
    death.seed = first_seed + static_cast<std::uint64_t>(death.node);
    death.is_drained = death.node == drained;
    expect_both(die_at_every_call(death));
  }
}

TEST(AsyncDeaths, ANodeIsLostAtAnyCall) {
  AsyncDeath death;
  death.kind = AsyncDeath::Kind::node;
  death.seed = 5;
  die_on_each_node(death, 1);
}

/// Also between its marker, the last one, and the rename that publishes.
TEST(AsyncDeaths, OneProcessDiesAtAnyCall) {
  AsyncDeath death;
  death.kind = AsyncDeath::Kind::process;
  death.seed = 8;
  die_on_each_node(death, 2);
}

/// When the job dies, the copies are planned, and most are left to the drains.
constexpr std::uint64_t calls_of_the_job[] = {300, 330};

TEST(AsyncDeaths, AllDrainsDieAtAnyCall) {
  AsyncDeath death;
  death.kind = AsyncDeath::Kind::drains;
  for (const std::uint64_t calls : calls_of_the_job) {
    death.calls = calls;
    Sum sum;
    for (const bool is_drained : {false, true}) {
      death.is_drained = is_drained;
      const Sum here = die_at_every_call(death, &AsyncDeath::drain_calls);
      if (is_drained) {
        EXPECT_EQ(here.whole, here.deaths) << "the next drains copy what is left";
      }
      sum += here;
    }
    expect_both(sum);
  }
}

TEST(AsyncDeaths, TheDrainOfOneNodeDiesAtAnyCall) {
  AsyncDeath death;
  death.kind = AsyncDeath::Kind::drain;
  death.calls = calls_of_the_job[0];
  Sum sum;
  for (death.node = 0; death.node < 3; ++death.node)
    sum += die_at_every_call(death, &AsyncDeath::drain_calls);
  expect_both(sum);
}

}  // namespace
}  // namespace cairn::sim
