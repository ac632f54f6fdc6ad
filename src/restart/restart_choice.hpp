// Which of the datasets in the caches a run restarts from: pure functions of what is known of them,
// so that the job and `cairn explain` cannot differ. Datasets come newest first.
#pragma once

#include <optional>
#include <vector>

#include "config/settings.hpp"
#include "recovery/cached_dataset.hpp"

namespace cairn {

/// The one that a run takes, unless the prefix directory has a newer one; null if there is none.
/// With SCR_GLOBAL_RESTART (`only_in_prefix`) what lies in the cache is never read there. Nothing
/// begun later than `not_after` is taken.
const CachedDataset* restart_choice(const std::vector<CachedDataset>& datasets, bool only_in_prefix,
                                    const std::optional<Uuid>& not_after = {});

/// The newest dataset, if another number of ranks has written it: nothing may be begun in its
/// place. What cannot be restored, is left alone or in quarantine does not count.
const CachedDataset* mismatched(const std::vector<CachedDataset>& datasets);

/// CAIRN_ELASTIC=1, in a run that may read the prefix directory.
inline bool is_elastic(const Settings& settings) { return settings.elastic && settings.fetch; }

/// That one, where the settings do not let a run pass it over: the run fails with wrong_ranks. Null
/// also where an elastic run reads it in the prefix directory.
const CachedDataset* refused_for_its_ranks(const std::vector<CachedDataset>& datasets,
                                           const Settings& settings);

/// wrong_ranks for that one, with what the user can do.
Error wrong_ranks(const CachedDataset& dataset, std::uint32_t ranks);

/// The newest checkpoint, if another number of ranks has written it and the prefix directory does
/// not have it: with CAIRN_ELASTIC=1 a run offers it, if all its parts are there. What does not
/// count is passed over, as above. Null if there is none.
const CachedDataset* only_others_have(const std::vector<CachedDataset>& datasets);

}  // namespace cairn
