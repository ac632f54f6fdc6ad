#include "rbio/roles.hpp"

#include <gtest/gtest.h>

namespace cairn::rbio {
namespace {

const std::vector<std::uint64_t> two_nodes = {7, 7, 9, 9};
const std::vector<std::uint64_t> alternating = {7, 9, 7, 9};

Roles roles_of(const std::vector<std::uint64_t>& nodes, int group_size, int parts, int rank) {
  auto roles = assign_roles(nodes, group_size, parts, rank);
  EXPECT_TRUE(roles) << roles.error().text;
  return *roles;
}

TEST(Roles, ByDefaultTheRanksOfANodeAreAGroupWithAFileOfItsOwn) {
  const Roles roles = roles_of(alternating, 0, 0, 3);
  EXPECT_EQ(roles.groups, 2);
  EXPECT_EQ(roles.parts, 2);
  EXPECT_EQ(roles.group_ranks, (std::vector<int>{1, 3}));
  EXPECT_EQ(roles.part_ranks, (std::vector<int>{1, 3}));
  EXPECT_FALSE(roles.is_writer);
}

TEST(Roles, TheFirstRankOfAGroupIsItsWriter) {
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(roles_of(two_nodes, 2, 0, rank).is_writer, rank % 2 == 0);
}

TEST(Roles, GroupsShareAFileWhereThereAreFewerFiles) {
  const Roles roles = roles_of(two_nodes, 1, 2, 1);
  EXPECT_EQ(roles.groups, 4);
  EXPECT_EQ(roles.parts, 2);
  EXPECT_EQ(roles.part_ranks, (std::vector<int>{0, 1}));
}

TEST(Roles, ExactlyOneWriterOfEachFileWritesItsHeader) {
  for (const int parts : {1, 2, 3, 5}) {
    std::vector<int> headers(static_cast<std::size_t>(parts));
    for (int rank = 0; rank < 5; ++rank) {
      const Roles roles = roles_of(std::vector<std::uint64_t>(5, 1), 1, parts, rank);
      if (roles.writes_header()) ++headers[static_cast<std::size_t>(roles.part())];
    }
    EXPECT_EQ(headers, std::vector<int>(static_cast<std::size_t>(parts), 1));
  }
}

TEST(Roles, MoreFilesThanGroupsAreRefused) {
  EXPECT_FALSE(assign_roles(two_nodes, 0, 3, 0));
  EXPECT_FALSE(assign_roles(two_nodes, -1, 0, 0));
  EXPECT_FALSE(assign_roles(two_nodes, 0, -1, 0));
}

}  // namespace
}  // namespace cairn::rbio
