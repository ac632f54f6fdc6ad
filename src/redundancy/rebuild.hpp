// Computing lost blocks from what is left of their stripes.
#pragma once

#include <span>

#include "comm/communicator.hpp"
#include "redundancy/damage.hpp"

namespace cairn {

/// What was written on this rank.
struct Rebuilt {
  std::uint64_t blocks = 0;  ///< data and parity
  std::uint64_t bytes = 0;
};

/// Collective over the set; `damages` are those of find_damages(), and room is made for the blocks.
/// Every rebuilt block is written by its owner, if it is what the owner's record says, and is then
/// known to `check` as good. A block that is made use of and turns out bad is noted there too, and
/// what was to be made of it is not written. Uses about `encode_bytes` of memory.
///
/// Errors are local: a member that cannot write still takes part to the end; agree on the result
/// before using it.
Result<Rebuilt> rebuild(Communicator& set, RankBlocks& blocks, BlockCheck& check,
                        const RankRecord& record, std::span<const DamagedRows> damages,
                        std::uint64_t encode_bytes);

}  // namespace cairn
