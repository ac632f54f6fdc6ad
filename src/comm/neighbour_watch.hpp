// Notices that a process of the job has ended, which not every launcher does.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace cairn {

class Socket;

/// All ranks in a ring in which those of a machine follow one another: by the lowest rank of the
/// machine, then by rank. `machine_of_rank`: equal numbers mean the same one, 0 is like no other.
std::vector<int> ring_of_machines(std::span<const std::uint64_t> machine_of_rank);

struct NeighbourWatchOptions {
  /// Until there is a connection.
  std::chrono::milliseconds patience{3000};
  /// An orderly program may end while others still receive what it has sent: for so long its end is
  /// no failure.
  std::chrono::milliseconds last_messages_take{3000};

  // For tests.
  bool loopback = false;                 ///< connections over that interface only
  std::optional<std::uint64_t> machine;  ///< that this process seems to be on
};

/// Each rank watches the process of the next rank of its machine, and the last one of a machine
/// also a connection with the first one of the next machine. So if one rank has ended, and others
/// live, one of these sees an end.
class NeighbourWatch {
 public:
  /// Collective. `place`: the node, for messages.
  NeighbourWatch(Communicator& comm, const std::string& place,
                 const NeighbourWatchOptions& options = {});
  /// Says farewell to the rank that watches this one by a connection.
  ~NeighbourWatch();
  NeighbourWatch(const NeighbourWatch&) = delete;
  NeighbourWatch& operator=(const NeighbourWatch&) = delete;

  /// Local, and cheap enough to ask in a loop that waits for messages. An error that names a rank,
  /// some seconds after its end: until then its last messages may still arrive.
  Status failure();
  /// The ranks that it watches: not one without others on its machine where the system does not
  /// allow that, and no more one that has said farewell or whose connection was lost.
  std::vector<int> watched() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Watched;

  const std::chrono::milliseconds last_messages_take_;
  const pid_t process_;  ///< a child made by fork() says no farewell
  std::vector<Watched> watched_;
  std::unique_ptr<Socket> watched_by_;  ///< null: by no other machine
  Clock::time_point next_look_;
};

}  // namespace cairn
