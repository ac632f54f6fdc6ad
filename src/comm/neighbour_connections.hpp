// Connections with ranks of other machines that show when a process there has ended.
#pragma once

#include <string>

#include "comm/communicator.hpp"
#include "comm/contact.hpp"
#include "comm/neighbour_watch.hpp"

namespace cairn {

/// What a rank has of the ones before and behind it in a ring.
struct NeighbourConnections {
  Socket next;    ///< empty: it cannot be had, or was not asked for
  Socket before;  ///< for the other side to watch: it ends with this process
  Contact contact_of_next;
};

/// Collective. `next` and `before` are ranks of other machines, or -1: no connection. If a rank has
/// a `next`, then that one has it as `before`. `place`: the node, for messages.
///
/// As in a PeerNetwork, a connection shows the token of its receiver, and the answer that of its
/// sender; the rest is left to the caller. The port is open only inside this call, which takes
/// hardly longer than the patience if all ranks live.
NeighbourConnections connect_neighbours(Communicator& comm, int next, int before,
                                        const std::string& place,
                                        const NeighbourWatchOptions& options);

}  // namespace cairn
