// Runs of rows against looking at every block by itself.
#include "redundancy/damage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "comm/team.hpp"

namespace cairn {
namespace {

constexpr int members = 5;

Encoding encoding_of(Scheme scheme) {
  Encoding encoding;
  encoding.scheme = scheme;
  encoding.failures = 2;
  encoding.block_bytes = 16;
  for (int member = 0; member < members; ++member) {
    encoding.members.push_back(member);
    encoding.member_nodes.push_back("n" + std::to_string(member));
    encoding.member_bytes.push_back(100 * 16 - static_cast<std::uint64_t>(70 * member));
  }
  return encoding;
}

/// A few runs of blocks of some length, which begin and end anywhere.
BlockRanges some_of(std::uint64_t blocks, std::mt19937& random) {
  BlockRanges ranges;
  for (std::uint64_t at = random() % 40; at < blocks; at += 1 + random() % 60) {
    const std::uint64_t end = std::min<std::uint64_t>(blocks, at + 1 + random() % 12);
    ranges.emplace_back(at, end);
    at = end;
  }
  return ranges;
}

using Lost = std::map<std::pair<std::uint64_t, int>, std::set<int>>;  // of row and position

Lost lost_of(const SetLayout& layout, const std::vector<Erasures>& erasures) {
  Lost lost;
  const auto note = [&](int member, bool data, const BlockRanges& ranges) {
    const auto per_row = static_cast<std::uint64_t>(data ? layout.columns() : layout.parity());
    for (const auto& [from, to] : ranges)
      for (std::uint64_t index = from; index < to; ++index) {
        const int position =
            data ? layout.position_of_data(member, index)
                 : layout.position_of_parity(member, static_cast<int>(index % per_row));
        const int slot = data ? *layout.slot_of(member, position)
                              : layout.columns() + *layout.parity_of(member, position);
        lost[{index / per_row, position}].insert(slot);
      }
  };
  for (int member = 0; member < members; ++member) {
    note(member, true, erasures[static_cast<std::size_t>(member)].data);
    note(member, false, erasures[static_cast<std::size_t>(member)].parity);
  }
  return lost;
}

Lost expanded(const std::vector<DamagedRows>& damages) {
  Lost lost;
  for (const DamagedRows& rows : damages)
    for (std::uint64_t row = rows.begin; row < rows.end; ++row)
      for (const DamagedStripe& stripe : rows.stripes)
        lost[{row, stripe.position}] = {stripe.lost.begin(), stripe.lost.end()};
  return lost;
}

TEST(Damage, IsWhatEachBlockTellsHoweverItIsScattered) {
  std::mt19937 random(1);
  int found = 0;
  for (int round = 0; round < 200; ++round) {
    const Encoding encoding = encoding_of(round % 2 == 0 ? Scheme::rs : Scheme::partner);
    const SetLayout layout(encoding);
    std::vector<Erasures> erasures(members);
    for (int member = 0; member < members; ++member)
      if (round < 150 ? member < 2 : random() % 2 == 0)
        erasures[static_cast<std::size_t>(member)] = {some_of(layout.data_blocks(member), random),
                                                      some_of(layout.parity_blocks(), random)};
    const Lost lost = lost_of(layout, erasures);
    const bool too_much = std::any_of(lost.begin(), lost.end(),
                                      [](const auto& stripe) { return stripe.second.size() > 2; });
    Team(members).run([&](Communicator& set) {
      const auto damages =
          find_damages(set, encoding, erasures[static_cast<std::size_t>(set.rank())]);
      ASSERT_EQ(damages.has_value(), !too_much) << "round " << round;
      if (damages) {
        EXPECT_EQ(expanded(*damages), lost) << "round " << round;
      }
    });
    found += too_much ? 0 : 1;
  }
  EXPECT_GT(found, 100);
  EXPECT_LT(found, 200) << "nothing was refused";
}

TEST(Damage, OfALostMemberIsToldInAFewEntriesHoweverLargeItIs) {
  Encoding encoding = encoding_of(Scheme::rs);
  for (std::uint64_t& bytes : encoding.member_bytes) bytes <<= 20;
  const SetLayout layout(encoding);
  Team(members).run([&](Communicator& set) {
    Erasures mine;
    if (set.rank() == 1) mine = {{{0, layout.data_blocks(1)}}, {{0, layout.parity_blocks()}}};
    const auto damages = find_damages(set, encoding, mine);
    ASSERT_TRUE(damages);
    EXPECT_EQ(damages->back().end, layout.rows());
    EXPECT_LE(damages->size(), 4U);
  });
}

}  // namespace
}  // namespace cairn
