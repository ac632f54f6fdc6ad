// Copies of a member's record on other members, so that a lost rank can be described.
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "records/rank_record.hpp"

namespace cairn {

/// The members, by index, whose records member `index` keeps, those first of which it keeps copies
/// (PARTNER). One more than may be lost, where there are so many: so that whatever is lost that the
/// scheme holds, a damaged record has a copy left.
std::vector<int> records_kept_by(const Encoding& encoding, int index);

/// Collective over the set: sends `sealed` to those who keep it, and returns the records of
/// records_kept_by(), in its order.
std::vector<Blob> exchange_records(Communicator& set, const Encoding& encoding, Bytes sealed);

/// What a record file holds: the rank's own record first, then those it keeps for others.
Blob join_records(Bytes own, const std::vector<Blob>& kept);

}  // namespace cairn
