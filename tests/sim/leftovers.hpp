// (h): what a run leaves in the caches.
#pragma once

#include "run.hpp"

namespace cairn::sim {

/// After a run that nothing was done to and that wrote a dataset (what cannot be restored may stay
/// until then, for the nodes that are away may come back), the stores of its nodes hold nothing but
/// datasets that may be restarted from, no more of them than the store keeps, each rank's part on
/// the node where it ran, and of a part only the files, one parity and one record. Throws
/// Violation.
void check_leftovers(const World& world, const RunPlan& plan);

}  // namespace cairn::sim
