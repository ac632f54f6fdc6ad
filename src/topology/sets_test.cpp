#include "topology/sets.hpp"

#include <gtest/gtest.h>

#include "comm/team.hpp"
#include "topology/placement.hpp"

namespace cairn {
namespace {

using Sets = std::vector<RedundancySet>;

/// `ranks_on_node` ranks on each node, filled node by node.
std::vector<std::uint64_t> block_placement(const std::vector<int>& ranks_on_node) {
  std::vector<std::uint64_t> nodes;
  for (std::size_t node = 0; node < ranks_on_node.size(); ++node)
    nodes.insert(nodes.end(), static_cast<std::size_t>(ranks_on_node[node]), node);
  return nodes;
}

TEST(Sets, ClassicPictureOfEightNodesTwoRanksSetsOfFour) {
  const auto sets = form_sets(block_placement({2, 2, 2, 2, 2, 2, 2, 2}), 4);
  EXPECT_EQ(sets, (Sets{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}}));
}

TEST(Sets, CyclicPlacementGivesTheSamePartners) {
  const std::vector<std::uint64_t> nodes = {0, 1, 2, 3, 0, 1, 2, 3};
  EXPECT_EQ(form_sets(nodes, 4), (Sets{{0, 1, 2, 3}, {4, 5, 6, 7}}));
}

TEST(Sets, ARemainderMakesSomeSetsLongerNeverShorter) {
  const auto sets = form_sets(block_placement({1, 1, 1, 1, 1, 1, 1}), 3);
  EXPECT_EQ(sets, (Sets{{0, 1, 2, 3}, {4, 5, 6}}));
  EXPECT_EQ(form_sets(block_placement({1, 1, 1}), 8), (Sets{{0, 1, 2}}));
}

TEST(Sets, ALonelyRankGetsAPartnerFromAnotherNode) {
  // Node 0 has three ranks, the others one: without a partner ranks 1 and 2 would be alone.
  const auto sets = form_sets(block_placement({3, 1, 1, 1}), 4);
  EXPECT_EQ(sets, (Sets{{0, 3}, {1, 5}, {2, 4}}));
}

TEST(Sets, OneNodeCannotProtectItself) {
  EXPECT_EQ(form_sets(block_placement({3}), 4), (Sets{{0}, {1}, {2}}));
}

TEST(Sets, EveryPlacementPartitionsTheRanksOverDistinctGroups) {
  // All ways to put 1..3 ranks on each of 5 nodes.
  for (int code = 0; code < 3 * 3 * 3 * 3 * 3; ++code) {
    std::vector<int> counts;
    for (int node = 0, rest = code; node < 5; ++node, rest /= 3) counts.push_back(1 + rest % 3);
    const auto nodes = block_placement(counts);
    for (int set_size = 2; set_size <= 5; ++set_size) {
      std::vector<int> seen(nodes.size());
      for (const auto& set : form_sets(nodes, set_size)) {
        EXPECT_TRUE(spread_over_groups(set, nodes)) << code;
        EXPECT_GE(set.size(), 2U) << "a rank is alone in placement " << code;
        for (const int rank : set) ++seen[static_cast<std::size_t>(rank)];
      }
      for (const int count : seen) EXPECT_EQ(count, 1);
    }
  }
}

TEST(Sets, SpreadOverGroupsDetectsASharedNode) {
  EXPECT_TRUE(spread_over_groups({0, 2}, {7, 7, 8}));
  EXPECT_FALSE(spread_over_groups({0, 1}, {7, 7, 8}));
}

TEST(Placement, IsGatheredAndNamesNeighbours) {
  Team team(5);
  team.run([](Communicator& comm) {
    const Placement placement = gather_placement(comm, comm.rank() < 2 ? "a" : "b");
    EXPECT_EQ(placement.nodes(), 2);
    EXPECT_EQ(placement.beside(0), (std::vector<int>{0, 1}));
    EXPECT_EQ(placement.beside(3), (std::vector<int>{2, 3, 4}));
  });
}

TEST(Placement, FailureGroupsComeFromGroupsLines) {
  Placement placement{{hash_of_name("a"), hash_of_name("b"), hash_of_name("c")}};
  std::map<std::string, NodeGroups> lines = {
      {"a", {{"RACK", "r1"}}}, {"b", {{"RACK", "r1"}}}, {"c", {{"RACK", "r2"}}}};
  const auto racks = failure_groups(placement, "RACK", lines);
  ASSERT_TRUE(racks);
  EXPECT_EQ((*racks)[0], (*racks)[1]);
  EXPECT_NE((*racks)[0], (*racks)[2]);
  EXPECT_EQ(form_sets(*racks, 2), (Sets{{0, 2}, {1}}));
  lines.erase("c");
  const auto missing = failure_groups(placement, "RACK", lines);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().text.find("rank 2"), std::string::npos);
  EXPECT_NE(missing.error().text.find("GROUPS="), std::string::npos);
}

}  // namespace
}  // namespace cairn
