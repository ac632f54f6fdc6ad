// Does what the job keeps in its caches fit?
#pragma once

#include <vector>

#include "cache/store.hpp"
#include "comm/communicator.hpp"
#include "recovery/cached_dataset.hpp"
#include "session/levels.hpp"

namespace cairn {

/// Bytes that one rank with `data_bytes` of files takes in a cache under this encoding if the
/// others of its set have as much, parity included, records (some KiB) not.
std::uint64_t cached_bytes(std::uint64_t data_bytes, Encoding encoding);

/// Collective. Compares, for each file system, what the ranks of this node keep at the peak in all
/// stores that lie on it (COUNT datasets each, and one more while a new one is being protected)
/// with what is free or already theirs. Outputs come on top: nobody knows how many a job will keep,
/// and those that are there take nobody's place. `data_bytes` is this rank's. Fails with no_space
/// and the figures of the lowest rank that does not fit.
Status check_space(Communicator& comm, const std::vector<Store>& stores,
                   const std::vector<Level>& levels, const Placement& placement,
                   const Settings& settings, const std::vector<CachedDataset>& datasets,
                   std::uint64_t data_bytes);

}  // namespace cairn
