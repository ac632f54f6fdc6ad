#include <gtest/gtest.h>

#include "wrapped_job.hpp"

namespace cairn::sim {
namespace {

TEST(WrappedSimulation, TheSameSeedGivesTheSameTrace) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome first = simulate_wrapped(seed);
    EXPECT_EQ(first.trace_hash, simulate_wrapped(seed).trace_hash) << "seed " << seed;
    EXPECT_NE(first.trace_hash, simulate_wrapped(seed + 1).trace_hash);
  }
}

// Without runs that die and go on from a checkpoint, its properties would hold for any code.
TEST(WrappedSimulation, ProgramsDieAndGoOn) {
  Outcome sum;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const Outcome outcome = simulate_wrapped(seed);
    EXPECT_EQ(outcome.failure, "") << "seed " << seed;
    sum.crashes += outcome.crashes;
    sum.restarts += outcome.restarts;
  }
  EXPECT_GT(sum.crashes, 100);
  EXPECT_GT(sum.restarts, 200);
}

}  // namespace
}  // namespace cairn::sim
