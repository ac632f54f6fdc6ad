// (e): what the tool for dead jobs makes of the caches.
#pragma once

#include "run.hpp"

namespace cairn::sim {

/// Rebuilds a copy of all that is left on all nodes as `cairn rebuild` does, over ranks of the
/// simulation. Violation if what must survive does not, if what was never committed does, or if a
/// byte is not as it was written.
void check_offline_rebuild(World& world);

}  // namespace cairn::sim
