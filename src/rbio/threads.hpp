// The threads of writers, their clock, and how a thread and its rank wait for each other: a seam,
// so that a simulation decides in which order they run.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "base/error.hpp"

namespace cairn::rbio {

using TimePoint = std::chrono::steady_clock::time_point;

/// A lock, and a way to wait for what changes under it.
class Monitor {
 public:
  virtual ~Monitor() = default;
  virtual void lock() = 0;
  virtual void unlock() = 0;
  /// Called with the lock, which it gives up meanwhile. Returns after notify_all(), at `limit`, or
  /// earlier.
  virtual void wait_until(TimePoint limit) = 0;
  virtual void notify_all() = 0;
};

/// Exactly one of the two is called, once.
class StartedThread {
 public:
  virtual ~StartedThread() = default;
  virtual void join() = 0;
  /// It may outlive what started it.
  virtual void detach() = 0;
};

class Threads {
 public:
  virtual ~Threads() = default;
  virtual TimePoint now() = 0;
  virtual std::unique_ptr<Monitor> make_monitor() = 0;
  /// A thread of low priority. io if the process may have no more.
  virtual Result<std::unique_ptr<StartedThread>> start(std::function<void()> main) = 0;
  /// Destroys it as the process ends, and not before.
  virtual void keep_until_exit(std::shared_ptr<void> kept) = 0;
};

/// Those of this machine.
std::shared_ptr<Threads> make_system_threads();

/// With the lock of the monitor: until `is_true` or `limit`. Returns whether it is true.
template <class Condition>
bool wait_until(Threads& threads, Monitor& monitor, TimePoint limit, Condition is_true) {
  while (!is_true()) {
    if (limit != TimePoint::max() && threads.now() >= limit) return false;
    monitor.wait_until(limit);
  }
  return true;
}

}  // namespace cairn::rbio
