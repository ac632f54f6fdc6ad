// Which dataset of the caches a run restarts from. These are pure functions, which the job and
// `cairn explain` share, so that both decide alike. Datasets come newest first.
#pragma once

#include <optional>
#include <vector>

#include "config/settings.hpp"
#include "recovery/cached_dataset.hpp"

namespace cairn {

/// The checkpoint that a run takes, unless the prefix directory has a newer one; null: none.
/// `only_in_prefix` (SCR_GLOBAL_RESTART): only one that is read in the prefix directory.
/// `not_after`: no checkpoint that was begun later than that one.
const CachedDataset* restart_choice(const std::vector<CachedDataset>& datasets, bool only_in_prefix,
                                    const std::optional<Uuid>& not_after = {});

/// The newest dataset, if another number of ranks has written it; else null. Datasets that no run
/// restarts from are skipped: lost, left alone, or held back.
const CachedDataset* mismatched(const std::vector<CachedDataset>& datasets);

/// CAIRN_ELASTIC=1, in a run that may read the prefix directory.
inline bool is_elastic(const Settings& settings) { return settings.elastic && settings.fetch; }

/// mismatched(), if the settings forbid to pass it over: the run fails with wrong_ranks. Null if an
/// elastic run can read it in the prefix directory.
const CachedDataset* refused_for_its_ranks(const std::vector<CachedDataset>& datasets,
                                           const Settings& settings);

/// The error wrong_ranks for that one, with what the user can do.
Error wrong_ranks(const CachedDataset& dataset, std::uint32_t ranks);

/// The newest checkpoint, if another number of ranks has written it and only the caches have it;
/// else null. With CAIRN_ELASTIC=1 a run offers it, if all its parts exist. Skips what mismatched()
/// skips.
const CachedDataset* only_others_have(const std::vector<CachedDataset>& datasets);

}  // namespace cairn
