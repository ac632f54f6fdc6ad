// Where bad blocks are, for people: in which file, at which bytes.
#pragma once

#include <string>
#include <vector>

#include "redundancy/block_check.hpp"

namespace cairn {

/// Bytes [begin, end) of a file of a record.
struct FileRange {
  std::size_t file = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The bytes of data blocks [first, end).
std::vector<FileRange> places_of(const RankRecord& record, std::uint64_t first, std::uint64_t end);

/// Blocks that are not what was written, one after the other.
struct BadBlocks {
  int rank = 0;
  BlockKind kind = BlockKind::data;
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::vector<std::string> paths;  ///< the files they are in; of one block, any of these may be bad
  std::string text;  ///< "/p/a does not match its checksum (block 3: bytes 786432-1048575)"
};

/// Of data, with one path for each file of the record.
std::vector<BadBlocks> bad_data(const RankRecord& record, const BlockRanges& ranges,
                                const std::vector<std::string>& paths);
/// Of the parity file at `path`.
std::vector<BadBlocks> bad_parity(const RankRecord& record, const BlockRanges& ranges,
                                  const std::string& path);

}  // namespace cairn
