// How one rank's bytes are cut into blocks.
//
// The files of a rank, one after the other, are its data: a stream of bytes. A block is the unit of
// checksum, of parity and of repair. Blocks are laid out in rows of `columns` data blocks for each
// member of a set. Blocks have block_bytes, except in the last row: there they have just the length
// that the rest of the largest member needs. So parity takes exactly ceil(largest / columns) bytes.
#pragma once

#include <cstdint>

namespace cairn {

struct Geometry {
  std::uint32_t block_bytes = 256 << 10;
  std::uint32_t columns = 1;     ///< data blocks of a member in a row
  std::uint64_t full_rows = 0;   ///< rows whose blocks are block_bytes long
  std::uint32_t tail_bytes = 0;  ///< block length of the last row, 0 if there is none

  bool operator==(const Geometry&) const = default;

  std::uint64_t rows() const { return full_rows + (tail_bytes > 0 ? 1 : 0); }
  std::uint32_t width(std::uint64_t row) const {
    return row < full_rows ? block_bytes : tail_bytes;
  }
  /// The length of the longest block.
  std::uint32_t widest() const { return rows() > 0 ? width(0) : 0; }
  /// Bytes of one column over all rows, as of one parity block per row.
  std::uint64_t column_bytes() const { return full_rows * block_bytes + tail_bytes; }

  /// Where data block `index` starts in the stream; blocks are numbered row by row.
  std::uint64_t data_offset(std::uint64_t index) const;
  /// Length of data block `index` of a member with `data_bytes`: 0 past its end.
  std::uint32_t data_length(std::uint64_t index, std::uint64_t data_bytes) const;
  /// Data blocks that are not empty.
  std::uint64_t data_blocks(std::uint64_t data_bytes) const;
};

/// The geometry for a set whose largest member has `largest_bytes`. columns >= 1, block_bytes >= 1.
Geometry make_geometry(std::uint64_t largest_bytes, std::uint32_t columns,
                       std::uint32_t block_bytes);

}  // namespace cairn
