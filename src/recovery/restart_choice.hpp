// Which of the datasets in the caches a run restarts from: pure functions of what is known of them,
// so that the job and `cairn explain` cannot differ. Datasets come newest first.
#pragma once

#include <vector>

#include "recovery/cached_dataset.hpp"

namespace cairn {

/// The one that a run takes, unless the prefix directory has a newer one; null if there is none.
/// With SCR_GLOBAL_RESTART (`only_in_prefix`) what lies in the cache is never taken.
const CachedDataset* restart_choice(const std::vector<CachedDataset>& datasets,
                                    bool only_in_prefix);

/// The newest dataset, if another number of ranks has written it: nothing may be begun in its
/// place. What cannot be restored, or is left alone, does not count.
const CachedDataset* mismatched(const std::vector<CachedDataset>& datasets);

/// wrong_ranks for that one, with what the user can do.
Error wrong_ranks(const CachedDataset& dataset, std::uint32_t ranks);

/// Indices of those that another number of ranks has written and that are not in the prefix
/// directory, the oldest first: what a restart from there would lose. Checkpoints older than one
/// that is there would not be lost.
std::vector<std::size_t> only_others_have(const std::vector<CachedDataset>& datasets);

}  // namespace cairn
