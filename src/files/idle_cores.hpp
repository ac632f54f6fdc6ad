// Work in pieces, each of which begins when a core has nothing else to do.
#pragma once

#include <functional>
#include <memory>

namespace cairn {

/// From now on this thread gets only what no other thread wants of a core. Without privileges no
/// process can take that back.
void use_idle_priority();

/// For one thread, which keeps its priority: so it can hurry up when its work becomes urgent. Until
/// then it waits for the end of a time slice whenever it wakes up on a core that is busy.
class IdleCores {
 public:
  virtual ~IdleCores() = default;
  /// To be called often, between pieces of the work. After each few milliseconds of it this waits
  /// until a core is idle, on which the next piece runs, or until `is_urgent`, which it asks every
  /// millisecond.
  virtual void give_way(const std::function<bool()>& is_urgent) = 0;
  /// After the last piece, by the same thread: it runs where it may, as before the first one.
  virtual void give_back() {}
};

/// Null if no thread can be started.
std::unique_ptr<IdleCores> make_idle_cores();

}  // namespace cairn
