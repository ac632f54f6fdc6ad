// Does what the job keeps in its caches fit?
#pragma once

#include <string>
#include <vector>

#include "cache/store.hpp"
#include "comm/communicator.hpp"
#include "recovery/cached_dataset.hpp"
#include "session/levels.hpp"

namespace cairn {

/// Bytes that a member of a set takes in a cache, by its index: data and parity, records (some KiB)
/// not.
std::uint64_t cached_bytes(const Encoding& encoding, int member);

/// Collective. Compares, for each file system, what the ranks that share a store keep at the peak
/// in all stores that lie on it (COUNT datasets each, one more while a new one is being protected,
/// and two more where copies go on without the program) with what is free or taken by the datasets
/// that make room. Outputs come on top: how many a job will keep is unknown, and those that are
/// there take no place of others. `data_bytes` is this rank's, and may differ: parity is as large
/// as the set needs. Fails with no_space and the figures of the lowest rank that does not fit.
Status check_space(Communicator& comm, const std::vector<Store>& stores,
                   const std::vector<Level>& levels, const Placement& placement,
                   const Settings& settings, const std::vector<CachedDataset>& datasets,
                   std::uint64_t data_bytes);

/// "; the store holds 2 outputs ...", to be added to an error for want of space: they are never
/// removed to make room. Empty where there are none.
std::string outputs_held(const std::vector<CachedDataset>& datasets, std::size_t store);

}  // namespace cairn
