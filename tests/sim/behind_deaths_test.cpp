// A job, or a process of it, or a node, dies at each call, one after the other, while checkpoints
// are protected behind the program. EVERY_DEATH=1: at every call, as in `make soak`; else at some.
#include "behind_deaths.hpp"

#include <gtest/gtest.h>

#include "support/every_death.hpp"
#include "support/faults.hpp"

namespace cairn::sim {
namespace {

using Kind = BehindDeath::Kind;

/// So many calls lie between two deaths.
std::uint64_t stride() {
  if (tries_every_death()) return 1;
  return sanitized ? 41 : 7;
}

struct Sum {
  std::uint64_t deaths = 0;
  std::uint64_t exposed = 0;  ///< while a dataset was not protected
};

/// Until a run comes to its end before it could die.
Sum die_at_every_call(BehindDeath death, std::uint64_t BehindDeath::*calls = &BehindDeath::calls,
                      bool BehindDeathOutcome::*has_died = &BehindDeathOutcome::has_died) {
  Sum sum;
  for (;; death.*calls += stride()) {
    const BehindDeathOutcome outcome = simulate_behind_death(death);
    EXPECT_EQ(outcome.failure, "")
        << "kind " << static_cast<int>(death.kind) << ", seed " << death.seed << ", node "
        << death.node << ", after " << death.calls << " calls, the next run after "
        << death.calls_of_next_run;
    if (!(outcome.*has_died) || !outcome.failure.empty()) return sum;
    ++sum.deaths;
    sum.exposed += outcome.was_exposed ? 1 : 0;
  }
}

/// There are deaths while d2 or d3 is exposed, and while neither is.
void expect_both(const Sum& sum) {
  EXPECT_GT(sum.exposed, 200 / stride());
  EXPECT_GT(sum.deaths - sum.exposed, 200 / stride());
}

TEST(BehindDeaths, AllProcessesDieAtAnyCall) {
  BehindDeath death;
  for (death.seed = 1; death.seed <= 2; ++death.seed) expect_both(die_at_every_call(death));
}

/// Which rank is how far differs from seed to seed.
void die_on_each_node(BehindDeath death) {
  for (death.node = 0; death.node < 3; ++death.node) {
    expect_both(die_at_every_call(death));
    ++death.seed;
  }
}

TEST(BehindDeaths, OneProcessDiesAtAnyCall) {
  BehindDeath death;
  death.kind = Kind::process;
  death.seed = 3;
  die_on_each_node(death);
}

TEST(BehindDeaths, ANodeIsLostAtAnyCall) {
  BehindDeath death;
  death.kind = Kind::node;
  death.seed = 6;
  die_on_each_node(death);
}

TEST(BehindDeaths, ThePowerFailsAtAnyCall) {
  BehindDeath death;
  death.kind = Kind::power;
  for (death.seed = 9; death.seed <= 10; ++death.seed) expect_both(die_at_every_call(death));
}

TEST(BehindDeaths, TheRanksLoseEachOtherAtAnyCall) {
  BehindDeath death;
  death.kind = Kind::connection;
  death.seed = 11;
  expect_both(die_at_every_call(death));
}

TEST(BehindDeaths, TheRunAfterADeathDiesAtAnyCall) {
  BehindDeath death;
  death.calls_of_next_run = 1;
  death.calls = 250;
  for (death.seed = 12; death.seed <= 13; ++death.seed) {
    const Sum sum = die_at_every_call(death, &BehindDeath::calls_of_next_run,
                                      &BehindDeathOutcome::next_has_died);
    EXPECT_EQ(sum.exposed, sum.deaths) << "d2 is written, and not protected";
    EXPECT_GT(sum.deaths, 200 / stride());
  }
}

}  // namespace
}  // namespace cairn::sim
