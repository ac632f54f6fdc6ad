// Where the ranks of this run are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "config/settings.hpp"

namespace cairn {

/// A number that represents a name in messages between ranks: 64 bits of FNV-1a.
std::uint64_t hash_of_name(std::string_view name);

/// One entry per rank; equal numbers mean the same node. Every rank has the whole table, 8 bytes
/// per rank.
struct Placement {
  std::vector<std::uint64_t> node_of_rank;

  int size() const { return static_cast<int>(node_of_rank.size()); }
  int nodes() const;
  /// Ranks on the node of `rank`, ascending.
  std::vector<int> beside(int rank) const;
  /// The first rank of each node, ascending.
  std::vector<int> first_ranks() const;
};

/// One allgather of 8 bytes per rank.
Placement gather_placement(Communicator& comm, const std::string& node_name);

/// A number per rank, equal where two ranks are in the same failure group `group`: NODE and WORLD
/// are built in, others come from the GROUPS lines. Fails with the name of a node that has no line.
Result<std::vector<std::uint64_t>> failure_groups(
    const Placement& placement, const std::string& group,
    const std::map<std::string, NodeGroups>& node_groups);

}  // namespace cairn
