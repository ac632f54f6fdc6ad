#include <gtest/gtest.h>

#include "prefix_job.hpp"

namespace cairn::sim {
namespace {

TEST(AsyncSimulation, TheSameSeedGivesTheSameTrace) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Outcome first = simulate_async(seed);
    EXPECT_EQ(first.trace_hash, simulate_async(seed).trace_hash) << "seed " << seed;
    EXPECT_NE(first.trace_hash, simulate_async(seed + 1).trace_hash);
  }
}

// Without copies that processes die in, its properties would hold for any code.
TEST(AsyncSimulation, ProcessesDieWhileTheyCopy) {
  Outcome sum;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const Outcome outcome = simulate_async(seed);
    EXPECT_EQ(outcome.failure, "") << "seed " << seed;
    sum.in_flight += outcome.in_flight;
    sum.found_whole += outcome.found_whole;
    sum.restarts += outcome.restarts;
  }
  EXPECT_GT(sum.in_flight, 30);
  EXPECT_GT(sum.found_whole, 30);
  EXPECT_GT(sum.restarts, 100);
}

}  // namespace
}  // namespace cairn::sim
