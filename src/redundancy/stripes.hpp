// Which blocks of a set protect each other.
//
// In every row, position p (0 to members-1) is one stripe: the parity block that member p keeps, and
// one data block of every other member. A member therefore has columns = members-1 data blocks and
// one parity block in a row, and no member keeps parity of its own data.
#pragma once

#include <cstdint>

namespace cairn {

struct Stripes {
  int members = 1;

  std::uint32_t columns() const { return members > 1 ? static_cast<std::uint32_t>(members - 1) : 1; }
  std::uint32_t parity_columns() const { return members > 1 ? 1 : 0; }

  /// Number of the data block of `member` that position `position` of `row` protects.
  /// member != position.
  std::uint64_t data_index(std::uint64_t row, int member, int position) const {
    return row * columns() + static_cast<std::uint64_t>(position < member ? position : position - 1);
  }
  /// The position that protects data block `index` of `member`.
  int position_of(std::uint64_t index, int member) const {
    const int column = static_cast<int>(index % columns());
    return column < member ? column : column + 1;
  }
};

}  // namespace cairn
