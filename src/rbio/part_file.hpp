// Reads a part's file; every byte that is handed out matches its checksum.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "files/files.hpp"
#include "rbio/part_format.hpp"

namespace cairn::rbio {

/// Header and table as they are in the file, so that one rank reads them for all.
struct PartIndex {
  PartHeader header;
  std::vector<RankEntry> entries;
};

/// corrupt, newer_format or io; the text names `path`.
Result<PartHeader> read_header(File& file, const std::string& path);
Result<Blob> read_index_bytes(File& file, const std::string& path);
/// corrupt if a published directory, `step_path`, has another step in its name than the header of
/// its part `path` says. Other directories may have any name.
Status check_step_of(const PartHeader& header, const std::string& step_path,
                     const std::string& path);
/// What read_index_bytes() gave.
Result<PartIndex> decode_index(Bytes bytes, const std::string& path);

/// Bytes [begin, begin + out.size()) of a piece; corrupt if a block they are in does not match.
Status read_piece(File& file, const std::string& path, const Piece& piece, std::uint64_t begin,
                  MutableBytes out);

/// Bytes [begin, end) of a part's file.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool operator==(const ByteRange&) const = default;
};

/// The bytes between table and fields, which hold zeros; empty ones are left out.
std::vector<ByteRange> gaps_of(const PartHeader& header);
/// corrupt if a byte of the gap is not zero.
Status check_gap(File& file, const std::string& path, const ByteRange& gap);

/// What the program does not see: that the gaps between table and fields hold zeros, and that the
/// file ends where it should.
Status check_gaps(File& file, const std::string& path, const PartHeader& header);

}  // namespace cairn::rbio
