// (h) and (i): what a run leaves in the caches.
#pragma once

#include <set>
#include <string>

#include "run.hpp"

namespace cairn::sim {

/// After a run that nothing was done to and that wrote a dataset (what cannot be restored may stay
/// until then, for the nodes that are away may come back), the stores of its nodes hold nothing but
/// datasets that may be restarted from, no more of them than the store keeps, each rank's part on
/// the node where it ran, and of a part only the files, one parity and one record. Throws
/// Violation.
void check_leftovers(const World& world, const RunPlan& plan);

/// The paths, after the names of their nodes, of all parts in the caches that have a record.
std::set<std::string> recorded_parts(const World& world);

/// Other ranks than wrote them cannot know that they are of no use. Throws Violation if one of
/// these is not there any more.
void check_kept(const World& world, const std::set<std::string>& parts);

}  // namespace cairn::sim
