// Redundancy sets as people read them: what `cairn layout` prints and the golden tables pin.
#pragma once

#include <string>
#include <vector>

#include "config/settings.hpp"
#include "topology/sets.hpp"

namespace cairn {

/// A line per set and what each member keeps for whom, under the scheme of the descriptor.
/// `node_of_rank` are node names, one per rank.
std::string describe_sets(const std::vector<RedundancySet>& sets,
                          const std::vector<std::string>& node_of_rank,
                          const CheckpointSettings& checkpoint);

}  // namespace cairn
