// Which ranks of the job see the same files in a store.
#pragma once

#include <vector>

#include "cache/store.hpp"
#include "topology/placement.hpp"

namespace cairn {

/// The ranks, ascending, that see what `rank` sees in the store: all where it is shared, else those
/// in its failure group, which may be of several nodes. Fails naming a node that is in no group.
Result<std::vector<int>> ranks_sharing(const Store& store, int rank, const Placement& placement,
                                       const Settings& settings);

}  // namespace cairn
