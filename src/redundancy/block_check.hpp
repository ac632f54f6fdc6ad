// What is known of the blocks of this rank.
#pragma once

#include <vector>

#include "redundancy/rank_blocks.hpp"

namespace cairn {

/// Ranges [first, second) of block indices, ascending.
using BlockRanges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

/// Blocks that are missing, unreadable or do not match the record.
struct Erasures {
  BlockRanges data;
  BlockRanges parity;
  bool none() const { return data.empty() && parity.empty(); }
};

enum class BlockKind { data, parity };

/// Compares blocks with the checksums of the record, each of them once.
class BlockCheck {
 public:
  /// `record` must outlive it.
  explicit BlockCheck(const RankRecord& record);

  /// Takes `block` for what is there now. True if it is what the record says.
  bool compare(BlockKind kind, std::uint64_t index, Bytes block);
  /// As compare, but passes over what is known to be good.
  bool is_good(BlockKind kind, std::uint64_t index, const Result<Bytes>& block);
  /// Reads and compares all blocks of which nothing is known yet.
  void read_unknown(RankBlocks& blocks);
  /// There is not one of them.
  void all_missing();

  /// The first error by which a block could not be read: another try may read it. What is not there
  /// is none.
  const Status& readable() const { return readable_; }

  Erasures erasures() const {
    return {ranges_of(Found::bad, data_), ranges_of(Found::bad, parity_)};
  }

 private:
  enum class Found : std::uint8_t { unknown, good, bad };
  using Blocks = std::vector<Found>;

  static BlockRanges ranges_of(Found what, const Blocks& blocks);
  Blocks& of(BlockKind kind) { return kind == BlockKind::data ? data_ : parity_; }

  const RankRecord& record_;
  Blocks data_;
  Blocks parity_;
  Status readable_;
};

/// Reads every block and compares it with the record's checksum. Local.
Erasures find_erasures(RankBlocks& blocks, const RankRecord& record);

}  // namespace cairn
