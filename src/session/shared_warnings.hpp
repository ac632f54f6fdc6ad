// Warnings that many ranks or nodes have at once: one line for all of them.
#pragma once

#include <string>
#include <vector>

#include "base/log.hpp"
#include "comm/communicator.hpp"

namespace cairn {

/// Collective. What the ranks of nodes warn of (`texts`, without the node's name). Rank 0 logs each
/// text once, with the nodes that have it: "512 nodes (n0 ... n511): TEXT".
void warn_of_nodes(Communicator& comm, const Log& log, const std::string& node,
                   const std::vector<std::string>& texts);

/// Collective. `ranks` of the ranks have the same warning, with their own names in it; that of the
/// others is empty. Rank 0 logs the first, and how many there are: "512 ranks; the first: TEXT".
void warn_of_ranks(Communicator& comm, const Log& log, const std::string& text, std::int64_t ranks);

}  // namespace cairn
