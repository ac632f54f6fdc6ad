// How the mounts of several nodes, which are no MPI program, find each other: by files in the
// prefix directory.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "comm/peer_network.hpp"

namespace cairn {

struct Meeting {
  std::string directory;           ///< the same for all, on a file system that all see; is made
  std::vector<std::string> nodes;  ///< in the same order for all
  std::size_t mine = 0;            ///< the place of this node among them
  std::chrono::milliseconds patience{60000};
};

/// An exchange of bytes among all nodes of the meeting. Files that an earlier meeting has left are
/// never taken for those of this one: each file names the files of the others that its process has
/// seen, by random numbers.
PeerNetwork::Exchange exchange_of(const Meeting& meeting);

/// Removes this node's files. For when all nodes have finished their exchanges.
void leave(const Meeting& meeting);

}  // namespace cairn
