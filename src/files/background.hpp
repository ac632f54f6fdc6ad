// Work on files by other threads, in the background or shared by several threads. It is the third
// part of the seam, so that a simulation decides when the work is done.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace cairn {

/// A repeated task. Destroying this ends the repetition, and waits for a call that is running, but
/// not for its thread.
class Repeated {
 public:
  virtual ~Repeated() = default;
};

/// Runs tasks one after the other while its owner does something else. A task must not throw, and
/// must not use the communicator.
class Background {
 public:
  virtual ~Background() = default;
  /// `bytes`: about how much the task reads, writes or removes.
  virtual void post(std::uint64_t bytes, std::function<void()> task) = 0;
  /// Returns when all posted tasks are done.
  virtual void wait() = 0;
  /// Calls `task` every `period_us` from now on, at the same time as posted tasks; it must not
  /// throw. Null if no thread can be started.
  virtual std::unique_ptr<Repeated> repeat(std::int64_t period_us, std::function<void()> task) = 0;
  /// Calls `step` repeatedly in a thread of idle priority, which gets only what no other thread
  /// wants of a core; each call returns the pause (us) before the next. It must not throw. Null if
  /// no thread can be started: then the caller must call `step` itself.
  virtual std::unique_ptr<Repeated> keep_stepping(std::function<std::int64_t()> /*step*/) {
    return nullptr;
  }
  /// As keep_stepping(), in a thread of the caller's priority.
  virtual std::unique_ptr<Repeated> keep_working(std::function<std::int64_t()> /*step*/) {
    return nullptr;
  }
  /// Calls `work` in up to `threads` threads at once, that of the caller included, and returns when
  /// all have returned. It may be fewer, so each call takes what is left to be done from a common
  /// heap. What one throws is thrown here. Beside all that was posted; no communicator either.
  virtual void in_parallel(int threads, const std::function<void()>& work) = 0;
};

/// One thread, which is there while there is work, and stands back where there are too few cores.
/// It is not started for little, or where there may be no more threads: then post() carries the
/// task out. All signals go to the program's own threads. The destructor waits; in a process made
/// by fork() it does not, the thread is not there.
std::unique_ptr<Background> make_background_thread();

/// The caller carries everything out itself; nothing is repeated.
std::unique_ptr<Background> make_foreground();

}  // namespace cairn
