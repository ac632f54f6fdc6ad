#include "records/set_layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace cairn {
namespace {

Encoding make(Scheme scheme, int members, int failures, int hop, std::uint64_t bytes = 10'000) {
  Encoding encoding;
  encoding.scheme = scheme;
  encoding.failures = static_cast<std::uint32_t>(failures);
  encoding.hop = static_cast<std::uint32_t>(hop);
  encoding.block_bytes = 256;
  for (int member = 0; member < members; ++member) {
    encoding.members.push_back(member);
    encoding.member_nodes.push_back("n");
    encoding.member_bytes.push_back(
        member % 2 == 0 ? bytes : bytes / 3 + static_cast<std::uint64_t>(member));
  }
  return encoding;
}

std::vector<Encoding> all_kinds() {
  std::vector<Encoding> kinds = {make(Scheme::single, 1, 0, 1)};
  for (const int members : {2, 3, 4, 5, 8, 17}) {
    kinds.push_back(make(Scheme::xor_, members, 1, 1));
    for (int failures = 1; failures <= 3 && failures < members; ++failures) {
      kinds.push_back(make(Scheme::rs, members, failures, 1));
      for (int hop = 1; hop < members; ++hop)
        if (is_sound(make(Scheme::partner, members, failures, hop)))
          kinds.push_back(make(Scheme::partner, members, failures, hop));
    }
  }
  return kinds;
}

TEST(SetLayout, EveryBlockIsInOneStripeWithDistinctMembers) {
  for (const Encoding& encoding : all_kinds()) {
    const SetLayout layout(encoding);
    std::map<std::pair<int, std::uint64_t>, int> data;
    std::map<std::pair<int, std::uint64_t>, int> parity;
    for (std::uint64_t row = 0; row < layout.rows(); ++row)
      for (int position = 0; position < layout.members(); ++position) {
        std::map<int, int> seen;
        for (int slot = 0; slot < layout.columns(); ++slot) {
          const int member = layout.contributor(position, slot);
          const std::uint64_t index = layout.data_index(row, slot);
          ++data[{member, index}];
          ++seen[member];
          ASSERT_EQ(layout.slot_of(member, position), slot);
          ASSERT_EQ(layout.position_of_data(member, index), position);
          ASSERT_LE(layout.data_length(member, index), layout.stripe_length(row, position));
        }
        for (int i = 0; i < layout.parity(); ++i) {
          const int member = layout.owner(position, i);
          ++parity[{member, layout.parity_index(row, i)}];
          ++seen[member];
          ASSERT_EQ(layout.parity_of(member, position), i);
          ASSERT_EQ(layout.position_of_parity(member, i), position);
          ASSERT_EQ(layout.parity_length(member, layout.parity_index(row, i)),
                    layout.stripe_length(row, position));
        }
        for (const auto& [member, count] : seen) ASSERT_EQ(count, 1) << "twice in a stripe";
      }
    for (int member = 0; member < layout.members(); ++member) {
      for (std::uint64_t index = 0; index < layout.data_blocks(member); ++index)
        ASSERT_EQ((data[{member, index}]), 1);
      for (std::uint64_t index = 0; index < layout.parity_blocks(); ++index)
        ASSERT_EQ((parity[{member, index}]), 1);
    }
  }
}

TEST(SetLayout, TheParityFileHasNoGapAndNoOverlap) {
  for (const Encoding& encoding : all_kinds()) {
    const SetLayout layout(encoding);
    for (int member = 0; member < layout.members(); ++member) {
      std::map<std::uint64_t, std::uint64_t> ranges;
      for (std::uint64_t index = 0; index < layout.parity_blocks(); ++index)
        if (layout.parity_length(member, index) > 0)
          ranges[layout.parity_offset(member, index)] = layout.parity_length(member, index);
      std::uint64_t end = 0;
      for (const auto& [offset, length] : ranges) {
        ASSERT_EQ(offset, end);
        end += length;
      }
      ASSERT_EQ(end, layout.parity_bytes(member));
    }
  }
}

/// The formulas of docs/reference/space-and-memory.md, to the byte.
TEST(SetLayout, StoragePerRankIsTheFormula) {
  for (const std::uint64_t bytes : {0ULL, 1ULL, 255ULL, 256ULL, 10'000ULL, 67'108'864ULL})
    for (const int members : {2, 4, 8, 64}) {
      const auto size = [&](Scheme scheme, int failures) {
        Encoding encoding = make(scheme, members, failures, 1);
        encoding.block_bytes = 131'072;
        encoding.member_bytes.assign(static_cast<std::size_t>(members), bytes);
        return SetLayout(encoding).parity_bytes(0);
      };
      const auto n = static_cast<std::uint64_t>(members);
      EXPECT_EQ(size(Scheme::partner, 1), bytes);
      EXPECT_EQ(size(Scheme::xor_, 1), (bytes + n - 2) / (n - 1));
      for (std::uint64_t k = 1; k <= 8 && k < n; ++k)
        EXPECT_EQ(size(Scheme::rs, static_cast<int>(k)), k * ((bytes + n - k - 1) / (n - k)));
    }
}

TEST(SetLayout, PartnerKeepsAsMuchAsItsNeighbourHas) {
  const SetLayout layout(make(Scheme::partner, 4, 1, 1));
  for (int member = 0; member < 4; ++member)
    EXPECT_EQ(layout.parity_bytes(member), layout.data_bytes((member + 3) % 4));
}

TEST(SetLayout, AnEncodingIsMadeOfADescriptorAndASet) {
  CheckpointSettings settings;
  const auto made = [&](Scheme scheme, int members) {
    settings.scheme = scheme;
    std::vector<int> set;
    for (int rank = 0; rank < members; ++rank) set.push_back(10 + rank);
    Encoding encoding = make_encoding(settings, set, 4096);
    encoding.member_nodes.resize(set.size());
    encoding.member_bytes.resize(set.size());
    EXPECT_TRUE(is_sound(encoding)) << members;
    return encoding;
  };
  settings.set_failures = 3;
  settings.partner_copies = 2;
  settings.partner_hop = 2;
  for (int members = 2; members <= 9; ++members) {
    EXPECT_EQ(made(Scheme::xor_, members).failures, 1U);
    EXPECT_EQ(made(Scheme::rs, members).failures,
              static_cast<std::uint32_t>(std::min(3, members - 1)));
    EXPECT_EQ(made(Scheme::partner, members).failures,
              static_cast<std::uint32_t>(std::min(2, members - 1)));
  }
  EXPECT_EQ(made(Scheme::partner, 5).hop, 2U);
  EXPECT_EQ(made(Scheme::partner, 4).hop, 1U) << "the second copy would come home";
  EXPECT_EQ(made(Scheme::rs, 1).scheme, Scheme::single);
  for (const int members : {4, 5, 8})
    EXPECT_EQ(hop_fell_back(settings, made(Scheme::partner, members)), members == 4) << members;
  EXPECT_FALSE(hop_fell_back(settings, made(Scheme::rs, 4)));
  settings.partner_hop = 9;
  EXPECT_FALSE(hop_fell_back(settings, made(Scheme::partner, 4))) << "9 is once round, and 1";
  EXPECT_EQ(made(Scheme::xor_, 1).failures, 0U);
}

/// The rule of the documents, which has no stripes.
bool holds(const Encoding& encoding, const std::vector<bool>& lost) {
  const std::size_t members = lost.size();
  if (encoding.scheme != Scheme::partner)
    return std::count(lost.begin(), lost.end(), true) <= static_cast<int>(encoding.failures);
  for (std::size_t member = 0; member < members; ++member) {
    bool left = !lost[member];
    for (std::size_t copy = 1; copy <= encoding.failures; ++copy)
      left = left || !lost[(member + copy * encoding.hop) % members];
    if (!left) return false;
  }
  return true;
}

TEST(SetLayout, ASetSurvivesTheLossesItsSchemeIsMadeFor) {
  for (const Encoding& encoding : all_kinds()) {
    const std::size_t members = encoding.members.size();
    if (members > 8) continue;
    const SetLayout layout(encoding);
    for (unsigned mask = 0; mask < 1U << members; ++mask) {
      std::vector<bool> lost(members);
      for (std::size_t member = 0; member < members; ++member)
        lost[member] = (mask >> member & 1U) != 0;
      ASSERT_EQ(survives(layout, lost), holds(encoding, lost))
          << name_of(encoding.scheme) << " of " << members << ", " << encoding.failures
          << " failures, hop " << encoding.hop << ", lost " << mask;
    }
  }
}

TEST(SetLayout, UnsoundEncodingsAreDetected) {
  EXPECT_TRUE(is_sound(make(Scheme::partner, 5, 2, 2)));
  EXPECT_FALSE(is_sound(make(Scheme::partner, 4, 2, 2))) << "the second copy would be at home";
  EXPECT_FALSE(is_sound(make(Scheme::partner, 4, 1, 4)));
  EXPECT_FALSE(is_sound(make(Scheme::rs, 4, 4, 1)));
  EXPECT_FALSE(is_sound(make(Scheme::xor_, 1, 1, 1)));
  EXPECT_FALSE(is_sound(make(Scheme::xor_, 4, 2, 1)));
  EXPECT_FALSE(is_sound(make(Scheme::single, 2, 0, 1)));
  EXPECT_FALSE(is_sound(make(static_cast<Scheme>(9), 2, 1, 1)));
  Encoding encoding = make(Scheme::xor_, 4, 1, 1);
  encoding.block_bytes = 0;
  EXPECT_FALSE(is_sound(encoding));
  encoding = make(Scheme::xor_, 4, 1, 1);
  encoding.member_bytes.pop_back();
  EXPECT_FALSE(is_sound(encoding));
}

}  // namespace
}  // namespace cairn
