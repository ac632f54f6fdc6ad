// Rank records as production makes them, for the seeds of several targets.
#pragma once

#include <vector>

#include "records/rank_record.hpp"

namespace cairn::fuzz {

/// The records of the members of one set that `settings` asks for.
std::vector<RankRecord> records_of_set(const CheckpointSettings& settings, int members);

/// One record of every scheme, each of another size of set.
std::vector<RankRecord> one_of_each_scheme();

/// Of a dataset in place, with a part of a shared file.
RankRecord one_in_place();

/// Of a part that is written and not protected yet.
RankRecord one_written();

}  // namespace cairn::fuzz
