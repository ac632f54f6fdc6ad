// Copies of a member's record on other members, so that a lost rank can be described.
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "records/rank_record.hpp"

namespace cairn {

/// Collective over the set: sends `sealed` to the `failures` members on the right, and returns those
/// of as many on the left, nearest first. Fewer when the set is smaller.
std::vector<Blob> exchange_records(Communicator& set, Bytes sealed, std::uint32_t failures);

/// What a record file holds: the rank's own record first, then those it keeps for others.
Blob join_records(Bytes own, const std::vector<Blob>& kept);

}  // namespace cairn
