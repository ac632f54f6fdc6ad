#include "rbio/plan.hpp"

#include <gtest/gtest.h>

namespace cairn::rbio {
namespace {

/// Of two ranks, each with half of each field; in the file the fields begin where a page does.
std::vector<Share> shares_of(const std::vector<std::uint64_t>& field_bytes) {
  std::vector<Share> shares(2);
  std::uint64_t field_begin = part_alignment;
  for (const std::uint64_t bytes : field_bytes) {
    for (std::uint64_t rank = 0; rank < 2; ++rank) {
      shares[rank].bytes.push_back(bytes / 2);
      shares[rank].offsets.push_back(field_begin + rank * (bytes / 2));
    }
    field_begin += (bytes / part_alignment + 1) * part_alignment;
  }
  return shares;
}

TEST(BufferLayout, SmallAndEmptyFieldsLieSideBySide) {
  const BufferLayout layout(shares_of({8, 0, least_placed_bytes - 2, 100}));
  EXPECT_EQ(layout.bytes(), 8 + least_placed_bytes - 2 + 100);
  EXPECT_EQ(layout.offset(1, 3), layout.bytes() - 50);
}

TEST(BufferLayout, ALargeFieldLiesInItsPageAsInTheFile) {
  const std::vector<Share> shares = shares_of({8, least_placed_bytes, 100});
  const BufferLayout layout(shares);
  for (const std::size_t member : {0U, 1U})
    EXPECT_EQ(layout.offset(member, 1) % part_alignment,
              shares[member].offsets[1] % part_alignment);
  EXPECT_EQ(layout.bytes(), part_alignment + least_placed_bytes + 100);
}

}  // namespace
}  // namespace cairn::rbio
