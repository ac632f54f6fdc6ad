// Redundancy sets: ranks that protect each other, each in another failure group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/settings.hpp"

namespace cairn {

/// World ranks in ring order: the right neighbour of member i is member i+1.
using RedundancySet = std::vector<int>;

/// Cuts all ranks into sets of about `set_size` (at least that many where the job is large enough).
///
/// The ranks of each failure group are numbered. All ranks with the same number, in rank order, are
/// cut into runs of consecutive ranks. So on equal nodes the first ranks of neighbouring nodes form
/// a set, and the second ranks another one. If groups have different numbers of ranks, a rank that
/// is left alone takes a partner from a larger set. A set of one rank means that this rank cannot
/// be protected: all others are in its own failure group, or needed in their sets.
///
/// Sets are ordered by their first rank. Pure: the same table gives the same sets everywhere.
std::vector<RedundancySet> form_sets(const std::vector<std::uint64_t>& failure_group_of_rank,
                                     int set_size);

/// The set that `rank` is in.
const RedundancySet& set_of(const std::vector<RedundancySet>& sets, int rank);

/// True if no two members are in one failure group.
bool spread_over_groups(const RedundancySet& set,
                        const std::vector<std::uint64_t>& failure_group_of_rank);

}  // namespace cairn
