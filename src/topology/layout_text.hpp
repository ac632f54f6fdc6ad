// The sets as people read them: what `cairn layout` prints and the golden tables pin.
#pragma once

#include <string>
#include <vector>

#include "config/settings.hpp"
#include "topology/sets.hpp"

namespace cairn {

/// A line per set ("set 1 of 4, 4 ranks, XOR"), and one per member: its node, what it keeps for whom.
/// `node_of_rank` are node names, one per rank.
std::string describe_sets(const std::vector<RedundancySet>& sets,
                          const std::vector<std::string>& node_of_rank, Scheme scheme);

/// "XOR" for Scheme::xor_, as in SCR_COPY_TYPE.
std::string name_of_scheme(Scheme scheme);

}  // namespace cairn
