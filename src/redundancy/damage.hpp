// Where a set has lost blocks, as all its members know it.
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "redundancy/block_check.hpp"

namespace cairn {

/// A stripe with blocks missing, in some row.
struct DamagedStripe {
  int position;
  std::vector<int> lost;  ///< slots of the erasure code, ascending
};

/// Rows [begin, end), in each of which these stripes miss these blocks: of a lost member, however
/// large, there are only a few.
struct DamagedRows {
  std::uint64_t begin;
  std::uint64_t end;
  std::vector<DamagedStripe> stripes;  ///< by position
};

/// The member that has a slot of the erasure code in a position.
int member_at(const SetLayout& layout, int position, int slot);

/// Collective over the set. All damaged stripes, in the order of rows, the same on all members.
/// Errors (the same on all): lost, naming members and nodes, if a stripe misses more than its
/// parity.
Result<std::vector<DamagedRows>> find_damages(Communicator& set, const Encoding& encoding,
                                              const Erasures& mine);

}  // namespace cairn
