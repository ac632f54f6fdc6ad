#include "records/geometry.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Geometry, BlocksCoverEveryMemberWithoutGapOrOverlap) {
  for (const std::uint32_t columns : {1U, 3U, 7U})
    for (const std::uint64_t largest : {1ULL, 100ULL, 701ULL, 3000ULL})
      for (std::uint64_t mine = 0; mine <= largest; mine += 1 + largest / 50) {
        const Geometry geometry = make_geometry(largest, columns, 100);
        std::uint64_t at = 0;
        const std::uint64_t blocks = geometry.data_blocks(mine);
        for (std::uint64_t index = 0; index < blocks; ++index) {
          ASSERT_EQ(geometry.data_offset(index), at);
          ASSERT_GT(geometry.data_length(index, mine), 0U);
          at += geometry.data_length(index, mine);
        }
        ASSERT_EQ(at, mine);
        EXPECT_EQ(geometry.data_length(blocks, mine), 0U);
        EXPECT_LE(blocks, geometry.rows() * columns);
      }
}

TEST(Geometry, AColumnHasTheBytesOfTheFormula) {
  for (const std::uint32_t columns : {1U, 2U, 3U, 7U, 63U})
    for (const std::uint64_t bytes : {0ULL, 1ULL, 2ULL, 4095ULL, 4096ULL, 4097ULL, 28672ULL,
                                      100'000ULL, 67'108'864ULL, 5'000'000'007ULL})
      EXPECT_EQ(make_geometry(bytes, columns, 4096).column_bytes(),
                (bytes + columns - 1) / columns);
}

}  // namespace
}  // namespace cairn
