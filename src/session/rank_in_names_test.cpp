#include "session/rank_in_names.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace cairn {
namespace {

/// What the ranks say together, each having these names.
NameEvidence together(const std::vector<std::vector<std::string>>& names) {
  NameEvidence of_all = {INT64_MIN, INT64_MIN};
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    std::map<std::string, std::string> files;
    for (const std::string& name : names[rank]) files[name] = "/somewhere/" + name;
    const NameEvidence mine = evidence_of(files, static_cast<int>(rank));
    for (std::size_t i = 0; i < of_all.size(); ++i) of_all[i] = std::max(of_all[i], mine[i]);
  }
  return of_all;
}

TEST(RankInNames, NamesWithTheRankInTheirLastNumberAreDistinct) {
  EXPECT_TRUE(says_distinct(together({{"ckpt.7/rank.0000"}, {"ckpt.7/rank.0001"}})));
  EXPECT_TRUE(says_distinct(together({{"a0", "b0"}, {"a1", "b1"}, {"a2", "b2"}})));
}

TEST(RankInNames, TheRankMayStandBeforeOtherNumbersAndCountFromOne) {
  EXPECT_TRUE(says_distinct(together({{"rank0.h5"}, {"rank1.h5"}, {"rank2.h5"}})));
  EXPECT_TRUE(says_distinct(together({{"image1.dat"}, {"image2.dat"}, {"image3.dat"}})));
}

TEST(RankInNames, RanksWithoutFilesDoNotMatter) {
  EXPECT_TRUE(says_distinct(together({{}, {"r1"}, {}, {"r3"}})));
  EXPECT_FALSE(says_no_files(together({{}, {"r1"}})));
  EXPECT_TRUE(says_no_files(together({{}, {}})));
  EXPECT_TRUE(says_distinct(together({{}, {}})));
}

/// Whatever the names, equal ones are never called distinct.
TEST(RankInNames, ANameOfTwoRanksIsNeverCalledDistinct) {
  for (const char* name : {"state", "0", "1", "r1", "r0.1", "r1.0", "0/1", "1/0/1", "r01.h0",
                           "99999999999999999999", "1.99999999999999999999"}) {
    EXPECT_FALSE(says_distinct(together({{name}, {name}}))) << name;
    EXPECT_FALSE(says_distinct(together({{name}, {"r1"}, {name}}))) << name;
    EXPECT_FALSE(says_distinct(together({{"r0", name}, {"r1", name}}))) << name;
  }
}

TEST(RankInNames, NamesOfWhichSomeLackTheRankAreNotKnownToBeDistinct) {
  EXPECT_FALSE(says_distinct(together({{"r0", "mesh"}, {"r1"}})));
  EXPECT_FALSE(says_distinct(together({{"a"}, {"b"}})));
  EXPECT_FALSE(says_distinct(together({{"0.x.5"}, {"5.x.1"}})));
}

}  // namespace
}  // namespace cairn
