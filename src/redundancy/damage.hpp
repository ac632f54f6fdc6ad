// Where a set has lost blocks, as all its members know it.
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "redundancy/block_check.hpp"

namespace cairn {

/// One stripe with blocks missing.
struct Damage {
  std::uint64_t row;
  int position;
  std::vector<int> lost;  ///< slots of the erasure code, ascending
};

/// The member that has a slot of the erasure code in a position.
int member_at(const SetLayout& layout, int position, int slot);

/// Collective over the set. All damaged stripes, in the order of rows and positions, the same on
/// all members. Errors (the same on all): lost, naming members and nodes, if a stripe misses more
/// than its parity.
Result<std::vector<Damage>> find_damages(Communicator& set, const Encoding& encoding,
                                         const Erasures& mine);

}  // namespace cairn
