#include "recovery/survey.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr std::uint32_t ranks_of_run = 8;

Summary uncommitted(std::uint32_t ranks) {
  Summary summary;
  summary.ranks = ranks;
  return summary;
}

Summary committed(std::uint32_t ranks) {
  Summary summary = uncommitted(ranks);
  summary.generation = 1;
  return summary;
}

CacheState judged(const Summary& summary, bool distribute = true) {
  return judge(summary, ranks_of_run, distribute);
}

TEST(Survey, WhatIsCommittedIsForTheSameNumberOfRanks) {
  EXPECT_EQ(judged(committed(8)), CacheState::committed);
  EXPECT_EQ(judged(committed(6)), CacheState::other_ranks);
  EXPECT_EQ(judged(committed(8), false), CacheState::left_alone);
}

/// A run with fewer ranks sees fewer nodes. It must not remove parts of a dataset that is committed
/// on the others.
TEST(Survey, OnlyTheNumberOfRanksThatWroteItCanSayThatItWasNeverCommitted) {
  EXPECT_EQ(judged(uncommitted(8)), CacheState::incomplete);
  EXPECT_EQ(judged(uncommitted(6)), CacheState::maybe_incomplete);
  EXPECT_EQ(judged(uncommitted(6), false), CacheState::maybe_incomplete);
}

TEST(Survey, RecordsThatCannotBeReadAreNoProofThatItIsIncomplete) {
  Summary summary = uncommitted(8);
  summary.damaged = true;
  EXPECT_EQ(judged(summary), CacheState::unreadable);
  summary.ranks = 0;
  EXPECT_EQ(judged(summary), CacheState::unreadable);
}

TEST(Survey, ANewerFormatComesBeforeAllElse) {
  for (Summary summary : {committed(8), uncommitted(8), uncommitted(6)}) {
    summary.newer = true;
    EXPECT_EQ(judged(summary), CacheState::newer_format);
    EXPECT_EQ(judged(summary, false), CacheState::newer_format);
  }
}

}  // namespace
}  // namespace cairn
