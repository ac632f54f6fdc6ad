#include "simulation.hpp"

#include <gtest/gtest.h>

namespace cairn::sim {
namespace {

TEST(Simulation, SameSeedSameTrace) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome first = simulate(seed);
    EXPECT_EQ(first.trace_hash, simulate(seed).trace_hash) << "seed " << seed;
    EXPECT_NE(first.trace_hash, simulate(seed + 1).trace_hash);
  }
}

// A simulation in which nothing happens would hold for any code.
TEST(Simulation, MuchHappens) {
  Outcome sum;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Outcome outcome = simulate(seed);
    EXPECT_EQ(outcome.failure, "") << "seed " << seed;
    sum.runs += outcome.runs;
    sum.crashes += outcome.crashes;
    sum.restarts += outcome.restarts;
    sum.removals += outcome.removals;
    sum.refusals += outcome.refusals;
    sum.derived.protected_ += outcome.derived.protected_;
    sum.derived.lost += outcome.derived.lost;
  }
  EXPECT_GT(sum.runs, 600);
  EXPECT_GT(sum.crashes, 100);
  EXPECT_GT(sum.restarts, 100);
  EXPECT_GT(sum.removals, 30);
  EXPECT_GT(sum.refusals, 5);
  EXPECT_GT(sum.derived.protected_, 100);
  EXPECT_GT(sum.derived.lost, 20);
}

}  // namespace
}  // namespace cairn::sim
