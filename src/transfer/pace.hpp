// How a background copy stands back for the program: a share of the time, and the program's hints.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>

#include "files/clock.hpp"

namespace cairn {

/// The thread that copies asks before each piece of work. The program's threads give hints at any
/// time; a program that gives none is as if it never communicated.
class Pace {
 public:
  /// `share`: the part of the time that work may take, 0 to 1; 0: all of it.
  Pace(Clock& clock, double share) : clock_(clock), share_(share) {}
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;

  // Of the program.

  /// From here on it sends no messages: work may go on.
  void begin_computing();
  /// From here on it sends messages: work stands back, but no longer than a second in a row.
  void end_computing();
  /// Nothing holds the work back any more, and it stops at its next piece.
  void stop() { is_stopped_ = true; }
  /// After stop(): it may go on.
  void resume() { is_stopped_ = false; }
  /// From this moment of steady time on the work is urgent.
  void be_done_by(std::int64_t us) { deadline_us_ = us; }
  /// While this lives, a call waits for the work, and nothing holds it back.
  class Lifted {
   public:
    explicit Lifted(Pace& pace) : pace_(pace) { ++pace_.lifted_; }
    Lifted(const Lifted&) = delete;
    Lifted& operator=(const Lifted&) = delete;
    ~Lifted() { --pace_.lifted_; }

   private:
    Pace& pace_;
  };

  // Of the thread that works, and of one that helps it.

  /// A call waits for it, or it has taken so long that it is to get a share of a core that the
  /// program keeps busy.
  bool is_urgent() const;
  bool is_stopped() const { return is_stopped_; }

  /// How long it has to rest before it asks again; 0: it works from now on.
  std::int64_t rest_us();
  /// Rests until it may work.
  void wait_for_turn();
  /// It works no more until it asks again.
  void stop_working();
  /// How long it has not worked, from some moment on: whatever the reason. Between two pieces of
  /// work it grows while these stand back. By any thread.
  std::int64_t rested_us() const { return rested_us_; }

 private:
  enum class Hint { none, computes, communicates };

  std::int64_t rest_us(std::int64_t now_us);
  bool may_work(std::int64_t now_us);
  void count(std::int64_t now_us);

  Clock& clock_;
  const double share_;
  std::atomic<Hint> hint_ = Hint::none;
  std::atomic<std::int64_t> hinted_us_ = 0;  ///< of steady time
  std::atomic<int> lifted_ = 0;
  std::atomic<bool> is_stopped_ = false;
  std::atomic<std::int64_t> rested_us_ = 0;
  std::atomic<std::int64_t> deadline_us_ = std::numeric_limits<std::int64_t>::max();

  // Of the threads that work: guarded by the mutex. Of steady time.
  std::mutex mutex_;
  bool is_working_ = false;
  std::int64_t counted_us_ = 0;    ///< until when work and rest are counted
  double owed_us_ = 0;             ///< of rest, for the work that was done
  std::int64_t standing_us_ = -1;  ///< since when it stands back for messages
  std::int64_t pass_us_ = 0;       ///< until when it works whatever the program does
};

}  // namespace cairn
