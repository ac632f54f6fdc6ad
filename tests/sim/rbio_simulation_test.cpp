#include <gtest/gtest.h>

#include "rbio_job.hpp"

namespace cairn::sim {
namespace {

TEST(RbioSimulation, SameSeedSameTrace) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome first = simulate_rbio(seed);
    EXPECT_EQ(first.trace_hash, simulate_rbio(seed).trace_hash) << "seed " << seed;
    EXPECT_NE(first.trace_hash, simulate_rbio(seed + 1).trace_hash);
  }
}

// A simulation in which nothing happens would hold for any code.
TEST(RbioSimulation, ProcessesDieWhileTheyWrite) {
  Outcome sum;
  constexpr int jobs = 100;
  for (std::uint64_t seed = 1; seed <= jobs; ++seed) {
    const Outcome outcome = simulate_rbio(seed);
    EXPECT_EQ(outcome.failure, "") << "seed " << seed;
    sum.runs += outcome.runs;
    sum.crashes += outcome.crashes;
    sum.restarts += outcome.restarts;
  }
  EXPECT_GT(sum.runs, 2 * jobs);
  EXPECT_GT(sum.crashes, jobs / 2);
  EXPECT_GT(sum.restarts, jobs);
}

// The last of these calls is behind the end of the run.
TEST(RbioSimulation, ADeathAtACallLeavesAWholeStep) {
  constexpr std::uint64_t stride = 101, calls = 1500, deaths_per_call = 48;
  int crashes = 0, runs = 0;
  for (std::uint64_t seed = 0; seed < deaths_per_call * calls; seed += stride) {
    const Outcome outcome = simulate_rbio_death(seed);
    ASSERT_EQ(outcome.failure, "") << "sim --rbio-death --seed " << seed;
    crashes += outcome.crashes;
    ++runs;
  }
  EXPECT_GT(crashes, runs / 2);
  EXPECT_LT(crashes, runs);
}

}  // namespace
}  // namespace cairn::sim
