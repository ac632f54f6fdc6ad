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

  /// Runs `rank_main` once per rank and returns when all have returned or were unwound. The first
  /// exception other than Ended ends all ranks and is rethrown here; so is Deadlock, unless a rank
  /// was ended before: then the others are ended as well, as a launcher does. May be called again.
  void run(int ranks, const std::function<void(int)>& rank_main);

  // Called by the rank that runs. All throw Ended if its process has ended, except while an
  // exception unwinds: then they do nothing.

  /// Others may go first.
  void yield();
  /// Until wake() is called for this rank.
  void block();
  void sleep_us(std::int64_t us);
  void throw_if_ended();

  void wake(int rank);
  /// The process of that rank ends at its next call, or at once if it waits.
  void end(int rank);
  void end_all();

  int current() const { return current_; }
  std::int64_t now_us() const { return now_us_; }
  /// Between runs.
  void pass_time_us(std::int64_t us) { now_us_ += us; }

 private:
  enum class State { ready, blocked, sleeping, finished };
  struct Rank {
    std::unique_ptr<Fiber> fiber;
    State state = State::ready;
    bool ended = false;
    std::int64_t until_us = 0;
  };

  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  void live(int rank, const std::function<void(int)>& rank_main);
  void make_ready(int rank);
  void wait_as(State state);
  void go_to(int next);
  int choose();
  bool wake_sleepers();
  void resolve_standstill();

  Chance chance_;
  std::uint64_t calls_per_switch_;
  std::int64_t now_us_ = 0;
  std::vector<Rank> ranks_;
  std::vector<int> ready_;
  Fiber outside_;
  int current_ = -1;
  bool somebody_ended_ = false;
  std::exception_ptr first_error_;
};

}  // namespace cairn::sim
