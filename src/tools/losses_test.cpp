#include "tools/losses.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cairn {
namespace {

CheckpointSettings descriptor(Scheme scheme, int set_size, int failures = 1) {
  CheckpointSettings checkpoint;
  checkpoint.scheme = scheme;
  checkpoint.set_size = set_size;
  checkpoint.set_failures = failures;
  checkpoint.partner_copies = failures;
  return checkpoint;
}

/// A rank on each node.
Losses one_each(int nodes, const CheckpointSettings& checkpoint) {
  std::vector<int> group_of_rank(static_cast<std::size_t>(nodes));
  std::iota(group_of_rank.begin(), group_of_rank.end(), 0);
  const auto sets = form_sets({group_of_rank.begin(), group_of_rank.end()}, checkpoint.set_size);
  return {sets, checkpoint, group_of_rank};
}

/// Ranks that hang together in an irregular way.
const std::vector<int> uneven = {0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 9, 9};

Losses on_uneven_nodes(const CheckpointSettings& checkpoint) {
  return {form_sets({uneven.begin(), uneven.end()}, checkpoint.set_size), checkpoint, uneven};
}

struct BruteForce {
  std::vector<double> losses, survived;  ///< by how many groups
};

/// Each selection of groups on its own, without clusters.
BruteForce try_all(const Losses& losses) {
  BruteForce found;
  found.losses.resize(static_cast<std::size_t>(losses.groups()) + 1);
  found.survived = found.losses;
  for (unsigned mask = 0; mask < 1U << losses.groups(); ++mask) {
    std::vector<int> lost;
    for (int group = 0; group < losses.groups(); ++group)
      if ((mask >> group & 1U) != 0) lost.push_back(group);
    ++found.losses[lost.size()];
    found.survived[lost.size()] += losses.survived(lost) ? 1 : 0;
  }
  return found;
}

TEST(Losses, PairsOfEightNodesInSetsOfFour) {
  const auto pairs = [](const CheckpointSettings& checkpoint) {
    const auto survival = one_each(8, checkpoint).count({2, 0});
    EXPECT_EQ(survival->losses, 28);
    return survival->survived;
  };
  EXPECT_EQ(pairs(descriptor(Scheme::xor_, 4)), 16) << "one in each set";
  EXPECT_EQ(pairs(descriptor(Scheme::rs, 4, 2)), 28);
  EXPECT_EQ(pairs(descriptor(Scheme::partner, 4)), 20) << "all but neighbours in a ring";
  EXPECT_EQ(pairs(descriptor(Scheme::partner, 4, 2)), 28);
  CheckpointSettings opposite = descriptor(Scheme::partner, 4);
  opposite.partner_hop = 2;
  EXPECT_EQ(pairs(opposite), 24) << "all but the two opposite pairs of each ring";
}

TEST(Losses, CountsAgreeWithTryingAll) {
  for (const auto& checkpoint : {descriptor(Scheme::xor_, 3), descriptor(Scheme::rs, 4, 2),
                                 descriptor(Scheme::partner, 4), descriptor(Scheme::partner, 4, 2)})
    for (const Losses& losses : {on_uneven_nodes(checkpoint), one_each(11, checkpoint)}) {
      const BruteForce all = try_all(losses);
      double not_survived = 0;
      for (int number = 1; number <= losses.groups(); ++number) {
        const auto place = static_cast<std::size_t>(number);
        const auto survival = losses.count({number, 0});
        ASSERT_TRUE(survival);
        EXPECT_EQ(survival->losses, all.losses[place]);
        EXPECT_EQ(survival->survived, all.survived[place]) << number;
        not_survived += (all.losses[place] - all.survived[place]) * std::pow(0.1, number) *
                        std::pow(0.9, losses.groups() - number);
      }
      EXPECT_NEAR(losses.count({0, 0.1})->not_survived, not_survived, 1e-12);
    }
}

TEST(Losses, TheExampleIsNotSurvivedButEachPartOfItIs) {
  for (const auto& checkpoint : {descriptor(Scheme::xor_, 3), descriptor(Scheme::partner, 4, 2)}) {
    const Losses losses = on_uneven_nodes(checkpoint);
    for (const auto& survival : {*losses.count({5, 0}), losses.estimate({5, 0}, 1, 1000)}) {
      ASSERT_FALSE(survival.example.empty());
      EXPECT_LE(survival.example.size(), 5U);
      EXPECT_FALSE(losses.survived(survival.example));
      for (std::size_t i = 0; i < survival.example.size(); ++i) {
        std::vector<int> fewer = survival.example;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_TRUE(losses.survived(fewer));
      }
    }
  }
  EXPECT_TRUE(one_each(8, descriptor(Scheme::xor_, 4)).count({1, 0})->example.empty());
}

TEST(Losses, EstimatesAreWithinTheirErrorOfTheCount) {
  const Losses losses = one_each(13, descriptor(Scheme::xor_, 4));
  for (const LossModel& model : {LossModel{2, 0}, LossModel{3, 0}, LossModel{0, 0.05}}) {
    const double truth = losses.count(model)->not_survived;
    int outside = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      const Survival estimate = losses.estimate(model, seed, 2000);
      EXPECT_LT(estimate.error_95, 0.03);
      outside += std::abs(estimate.not_survived - truth) > estimate.error_95 ? 1 : 0;
    }
    EXPECT_LE(outside, 12) << "of 100, where 5 are to be expected";
    EXPECT_GE(outside, 1) << "the error is given too large, or nothing is random: " << truth;
  }
}

TEST(Losses, TheSameSeedGivesTheSameAnswer) {
  const Losses losses = one_each(64, descriptor(Scheme::xor_, 8));
  for (const LossModel& model : {LossModel{3, 0}, LossModel{0, 0.05}}) {
    const Survival first = losses.estimate(model, 7, 2000);
    EXPECT_EQ(losses.estimate(model, 7, 2000).survived, first.survived);
    EXPECT_EQ(losses.estimate(model, 7, 2000).example, first.example);
    EXPECT_NE(losses.estimate(model, 8, 2000).survived, first.survived);
  }
}

TEST(Losses, ErrorsAreThoseOfWilsonsInterval) {
  EXPECT_NEAR(error_95(0, 100), 0.0370, 1e-4);
  EXPECT_NEAR(error_95(50, 100), 0.0962, 1e-4);
  EXPECT_NEAR(error_95(100, 100), 0.0370, 1e-4);
}

TEST(Losses, ManyNodesAreStillCounted) {
  const Losses losses = one_each(10'000, descriptor(Scheme::xor_, 8));
  const auto survival = losses.count({4, 0});
  ASSERT_TRUE(survival);
  // Four different ones of 1250 sets, and any of 8 in each.
  const double survived = 1250.0 * 1249 * 1248 * 1247 / 24 * 4096;
  EXPECT_NEAR(survival->survived / survived, 1, 1e-12);
  const double set_lives = std::pow(0.99, 8) + 8 * 0.01 * std::pow(0.99, 7);
  EXPECT_NEAR(losses.count({0, 0.01})->not_survived, 1 - std::pow(set_lives, 1250), 1e-12);
  EXPECT_NEAR(losses.count({0, 1e-9})->not_survived / (1250 * 28 * 1e-18), 1, 1e-6);
  EXPECT_EQ(losses.count({0, 1})->not_survived, 1);
  EXPECT_FALSE(std::signbit(losses.count({0, 1e-300})->not_survived));
}

TEST(Losses, TooMuchIsNotCounted) {
  EXPECT_FALSE(one_each(200, descriptor(Scheme::rs, 100, 8)).count({8, 0})) << "too many steps";
  EXPECT_FALSE(one_each(5000, descriptor(Scheme::xor_, 8)).count({2000, 0})) << "beyond a double";
  const Survival all = one_each(200, descriptor(Scheme::rs, 100, 8)).estimate({8, 0}, 1, 500);
  EXPECT_EQ(all.survived, 500) << "RS(8) survives any 8";
  EXPECT_GT(all.error_95, 0);
}

}  // namespace
}  // namespace cairn
