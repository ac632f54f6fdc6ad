// Notices that a process of this machine has ended, which not every launcher does.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.hpp"

namespace cairn {

class Socket;

/// Each rank watches the next one of its machine, so that one of the others sees each end.
class NeighbourWatch {
 public:
  /// Collective. `place`: the node, for messages. Watches nothing where the rank is alone on its
  /// machine, or the system does not allow it.
  NeighbourWatch(Communicator& comm, const std::string& place);
  ~NeighbourWatch();
  NeighbourWatch(const NeighbourWatch&) = delete;
  NeighbourWatch& operator=(const NeighbourWatch&) = delete;

  /// Local, and cheap enough to ask in a loop that waits for messages. An error that names the
  /// neighbour, some seconds after its end: until then its last messages may still arrive.
  Status failure();

 private:
  using Clock = std::chrono::steady_clock;

  bool has_ended() const;

  std::string place_;
  int neighbour_ = -1;
  std::int64_t process_ = 0;
  std::unique_ptr<Socket> watch_;  ///< null: nothing to watch
  Clock::time_point next_look_;
  std::optional<Clock::time_point> ended_since_;
};

}  // namespace cairn
