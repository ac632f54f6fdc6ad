// Where the pieces of a step go: decided by messages of a few bytes before any data move.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.hpp"
#include "rbio/part_format.hpp"

namespace cairn::rbio {

/// What one rank writes, and where to in the file of its part.
struct Share {
  std::uint32_t rank = 0;
  std::vector<std::uint64_t> offsets;  ///< per field, in the file
  std::vector<std::uint64_t> bytes;    ///< per field
  std::uint64_t entry_offset = 0;      ///< of its entry in the file
};

struct StepPlan {
  PartHeader header;  ///< of the part; step, attempt, part, parts and ranks are the caller's to set
  Share mine;
};

/// Over the ranks of one part. One exclusive scan.
StepPlan plan_step(Communicator& part, const std::vector<Field>& fields, std::uint32_t rank);

/// Over the ranks of one group: on its first rank the shares of all, in rank order; elsewhere
/// nothing.
std::vector<Share> gather_shares(Communicator& group, const Share& mine);

/// A field of which a group has less takes no bytes of the buffer for its place in a page.
constexpr std::uint64_t least_placed_bytes = std::uint64_t{64} << 10;

/// Where a field of which the group has so many bytes begins in the buffer, from `place` on. A
/// large one lies in its page as `file_offset` does in the file: from there whole pages can be
/// written past the page cache.
constexpr std::uint64_t begin_of_field(std::uint64_t place, std::uint64_t file_offset,
                                       std::uint64_t bytes) {
  return bytes < least_placed_bytes ? place : place + (file_offset - place) % part_alignment;
}

/// The shares of a group in one buffer: field by field, and within a field rank by rank, as in the
/// file.
class BufferLayout {
 public:
  explicit BufferLayout(const std::vector<Share>& shares);

  std::uint64_t bytes() const { return bytes_; }
  /// Where the piece of `shares[member]` begins.
  std::uint64_t offset(std::size_t member, std::size_t field) const {
    return offsets_[member][field];
  }

 private:
  std::vector<std::vector<std::uint64_t>> offsets_;
  std::uint64_t bytes_ = 0;
};

}  // namespace cairn::rbio
