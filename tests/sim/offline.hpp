// (e): what the tool for dead jobs makes of the caches.
#pragma once

#include "run.hpp"
#include "simulation.hpp"

namespace cairn::sim {

/// Rebuilds a copy of all that is left on all nodes as `cairn rebuild` does, over ranks of the
/// simulation. Violation if what must survive does not, if what was never committed does, or if a
/// byte is not as it was written. Before that it derives the state of each dataset as the commands
/// do: Violation if the records do not allow that state, or if it is not what the model knows of
/// losses, or not what comes of the rebuild.
DerivedCounts check_offline_rebuild(World& world);

}  // namespace cairn::sim
