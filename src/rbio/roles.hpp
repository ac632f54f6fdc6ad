// Which rank writes what: groups of ranks with one writer each, and the part each group writes to.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hpp"

namespace cairn::rbio {

/// Equal on all ranks but for the last four.
struct Roles {
  int groups = 1;
  int parts = 1;
  std::vector<int> group_of_rank;
  std::vector<int> part_of_group;

  int group = 0;                 ///< of this rank
  std::vector<int> group_ranks;  ///< ascending; the first is the writer
  std::vector<int> part_ranks;   ///< of all groups that write to this rank's part, ascending
  bool is_writer = false;

  int part() const { return part_of_group[static_cast<std::size_t>(group)]; }
  /// One writer of each part writes its header.
  bool writes_header() const;
};

/// Groups of `group_size` consecutive ranks; 0: the ranks of a node, in the order of the nodes'
/// first ranks. `parts` files, each shared by consecutive groups; 0: one per group. bad_setting if
/// there are more parts than groups.
Result<Roles> assign_roles(const std::vector<std::uint64_t>& node_of_rank, int group_size,
                           int parts, int rank);

}  // namespace cairn::rbio
