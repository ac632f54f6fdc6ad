// Several exchanges of messages at once on one rank.
#pragma once

#include <vector>

#include "comm/communicator.hpp"

namespace cairn {

/// Work that goes on by itself whenever its messages allow, and never waits. Ranks whose exchanges
/// depend on each other cannot deadlock as long as each can go on while the others cannot.
class Activity {
 public:
  enum class Step {
    waits,  ///< nothing to do until a message under way is complete
    moved,
    done,
  };

  virtual ~Activity() = default;
  /// Goes one message further, if it can.
  virtual Step advance() = 0;
};

/// Local. Advances all of them in turn, so that none gets far ahead of the others, until all are
/// done.
void carry_out(Communicator& comm, std::vector<Activity*> active);

}  // namespace cairn
