// Ranks as threads of one process: for tests, and for tools that work after the job has died.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>

#include "comm/communicator.hpp"

namespace cairn {

/// Thrown in every rank that waits, or goes on to communicate, after another rank has thrown.
class TeamStopped : public std::runtime_error {
 public:
  TeamStopped() : std::runtime_error("another rank of the team has ended with an exception") {}
};

/// Thrown when every rank that has not ended waits for a message: none can ever arrive.
class TeamDeadlock : public std::runtime_error {
 public:
  TeamDeadlock() : std::runtime_error("every rank of the team waits for another") {}
};

class Team {
 public:
  enum class Mode {
    buffered,    ///< a send completes at once
    rendezvous,  ///< a send completes when it is received: shows the deadlocks that buffers hide
  };

  explicit Team(int size, Mode mode = Mode::rendezvous);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Runs `rank_main` once per rank, each in a thread of its own, and returns when all have ended.
  /// When one throws, all others are unwound by TeamStopped, and the first exception is rethrown
  /// here. A deadlock (TeamDeadlock), and a message of another size than its receiver expects or to
  /// a rank or tag there is not (std::logic_error), count as thrown by a rank. May be called again
  /// afterwards; messages nobody received are dropped.
  void run(const std::function<void(Communicator&)>& rank_main);

  struct Shared;

 private:
  std::unique_ptr<Shared> shared_;
};

}  // namespace cairn
