// The file of a part: header, table, then each field contiguous (docs/format/rbio-part.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "rbio/attempt.hpp"
#include "rbio/field.hpp"

namespace cairn::rbio {

/// One checksum covers so many bytes of a piece; the last block of a piece may be shorter.
constexpr std::uint64_t block_bytes = std::uint64_t{256} << 10;
/// The table and each field begin at a multiple of this.
constexpr std::uint64_t part_alignment = 4096;
constexpr std::size_t preamble_bytes = 32;

constexpr std::uint64_t blocks_in(std::uint64_t bytes) {
  return bytes / block_bytes + (bytes % block_bytes != 0 ? 1 : 0);
}

/// One field in a part's file.
struct FieldRegion {
  FieldShape shape;
  std::uint64_t offset = 0;
  std::uint64_t elements = 0;

  std::uint64_t bytes() const { return elements * shape.element_bytes(); }
  bool operator==(const FieldRegion&) const = default;
};

/// What the header says.
struct PartHeader {
  std::uint64_t step = 0;
  Attempt attempt;          ///< equal in all parts of a step
  std::uint32_t part = 0;   ///< this one
  std::uint32_t parts = 1;  ///< of the step
  std::uint32_t ranks = 1;  ///< of all parts
  std::uint64_t table_offset = 0;
  std::uint64_t table_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::vector<FieldRegion> fields;

  bool operator==(const PartHeader&) const = default;
};

/// What a rank has in the file: per field one piece, and the checksums of its blocks.
struct Piece {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> checksums;  ///< CRC32C, blocks_in(bytes) of them

  bool operator==(const Piece&) const = default;
};

struct RankEntry {
  std::uint32_t rank = 0;
  std::vector<Piece> pieces;  ///< one per field, in the order of the header

  bool operator==(const RankEntry&) const = default;
};

/// Bytes of the file before the table: depends on the shapes only, so that every writer knows it.
std::uint64_t header_capacity(const std::vector<FieldShape>& shapes);

/// Places table and fields: `elements` per field and `table_bytes` are those of all its ranks.
PartHeader lay_out(const std::vector<FieldShape>& shapes,
                   const std::vector<std::uint64_t>& elements, std::uint64_t table_bytes);

/// Bytes of an entry whose pieces have so many bytes.
std::uint64_t entry_bytes(const std::vector<std::uint64_t>& piece_bytes);

/// Of each block of a piece.
std::vector<std::uint32_t> checksums_of(Bytes piece);

/// Exactly header_capacity() bytes.
Blob encode_header(const PartHeader& header);
Blob encode_entry(const RankEntry& entry);

/// `content` is the file's beginning, at least what bytes_of_header() asks for. corrupt or
/// newer_format; the text does not name the file.
Result<PartHeader> decode_header(Bytes content);
/// How many bytes of the file decode_header() needs, from the first preamble_bytes.
Result<std::uint64_t> bytes_of_header(Bytes preamble);

/// The whole table, checked against the header: every piece lies in its field's region.
Result<std::vector<RankEntry>> decode_table(const PartHeader& header, Bytes table);

}  // namespace cairn::rbio
