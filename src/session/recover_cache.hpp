// What Init does with what earlier runs left in the caches.
#pragma once

#include <vector>

#include "base/log.hpp"
#include "files/clock.hpp"
#include "prefix/event_log.hpp"
#include "recovery/cached_dataset.hpp"
#include "session/levels.hpp"

namespace cairn {

/// Collective. All datasets in the stores, newest first, restored to the ranks of this run as far
/// as possible: usable, or with the reason why not. What was never committed is removed. Datasets
/// that were written by another number of ranks, or by a newer Cairn, are left as they are.
///
/// The newest usable checkpoint has all its blocks checked; a dataset whose set members came to
/// share a failure group is protected anew over sets that fit the present places.
///
/// `events` gets each dataset for which something had to be done, when that begins and when
/// it ends.
///
/// Errors (agreed): a store that cannot be listed, uncommitted leftovers that cannot be removed.
Result<std::vector<CachedDataset>> recover_cache(Communicator& comm, Files& files, Clock& clock,
                                                 std::vector<Store>& stores,
                                                 const std::vector<Level>& levels,
                                                 const Placement& placement,
                                                 const Settings& settings, const Log& log,
                                                 EventLog& events);

/// Collective. Removes all datasets in the stores. Errors (agreed): what cannot be listed or
/// removed.
Status purge_cache(Communicator& comm, Files& files, std::vector<Store>& stores,
                   const Placement& placement);

}  // namespace cairn
