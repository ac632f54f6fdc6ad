// Ranks that run one at a time, in an order that a seed decides, on a clock of their own.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "chance.hpp"
#include "fiber.hpp"

namespace cairn::sim {

/// Thrown in a rank whose process has ended: unwinds it.
struct Ended {};

/// Every rank that is left waits for another: none will ever go on.
class Deadlock : public std::runtime_error {
 public:
  Deadlock() : std::runtime_error("every rank that is left waits for another") {}
};

class Scheduler {
 public:
  explicit Scheduler(Chance chance);

  /// Runs `rank_main` once per rank, and beside it, as another thread of the same process,
  /// `helper_main`; returns when all have returned or were unwound. The first
  /// exception other than Ended ends all ranks and is rethrown here; so is Deadlock, unless a rank
  /// was ended before: then the others are ended as well, as a launcher does. May be called again.
  void run(
      int ranks, const std::function<void(int)>& rank_main,
      const std::function<void(int)>& helper_main = [](int) {});

  // Called by the rank, or the helper, that runs. All throw Ended if its process has ended, except
  // while an exception unwinds: then they do nothing.

  /// Others may go first.
  void yield();
  /// Until wake() is called for this rank, or wake_helper() for its helper.
  void block();
  void sleep_us(std::int64_t us);
  void throw_if_ended();

  void wake(int rank);
  /// And all threads that start_thread() has started in its process: each looks again for what it
  /// waits for.
  void wake_process(int rank);
  void wake_helper(int rank) { wake(rank + ranks_); }

  /// Starts one more thread in the process that runs, and returns its number. Its process unwinds
  /// neither the rank nor a thread that is started later before this thread is unwound, because it
  /// may use what they have on their stacks. When it returns it wakes its process.
  int start_thread(std::function<void()> main);
  /// A thread that start_thread() has started does not sleep any longer.
  void wake_sleeper(int thread) {
    if (at(thread).state == State::sleeping) make_ready(thread);
  }
  /// One that waits, in whatever way, goes on.
  void wake_thread(int thread) { make_ready(thread); }
  /// The process of that rank ends at its next call, or at once if it waits.
  void end(int rank);
  void end_all();

  /// The rank that runs, itself or another thread of its process.
  int current() const { return threads_[static_cast<std::size_t>(current_)].rank; }
  int current_thread() const { return current_; }
  std::int64_t now_us() const { return now_us_; }
  /// Between runs.
  void pass_time_us(std::int64_t us) { now_us_ += us; }

 private:
  enum class State { ready, blocked, sleeping, finished };
  struct Thread {
    std::unique_ptr<Fiber> fiber;
    int rank = 0;
    State state = State::ready;
    bool ended = false;
    std::int64_t until_us = 0;
  };

  Thread& at(int thread) { return threads_[static_cast<std::size_t>(thread)]; }
  bool is_started(int thread) const { return thread >= 2 * ranks_; }
  void live(int thread, const std::function<void(int)>& main);
  bool unwinds_later(int thread) const;
  void make_ready(int thread);
  void wait_as(State state);
  void go_to(int next);
  int choose();
  bool wake_sleepers();
  void resolve_standstill();

  Chance chance_;
  std::uint64_t calls_per_switch_;
  std::int64_t now_us_ = 0;
  int ranks_ = 1;
  std::vector<Thread> threads_;  ///< by rank, then their helpers, then those started meanwhile
  std::vector<int> ready_;
  Fiber outside_;
  int current_ = -1;
  bool somebody_ended_ = false;
  std::exception_ptr first_error_;
};

}  // namespace cairn::sim
