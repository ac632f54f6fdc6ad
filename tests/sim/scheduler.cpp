#include "scheduler.hpp"

#include <algorithm>

namespace cairn::sim {
namespace {
constexpr int outside = -1;
constexpr std::uint64_t longest_step_us = 40;
}  // namespace

// Some defects need ranks in lockstep, others one that is far ahead; so how often they change is
// drawn too.
Scheduler::Scheduler(Chance chance)
    : chance_(chance), calls_per_switch_(std::uint64_t{1} << (2 * chance_.below(4))) {}

void Scheduler::run(int ranks, const std::function<void(int)>& rank_main,
                    const std::function<void(int)>& helper_main) {
  ranks_ = ranks;
  threads_.clear();
  threads_.resize(2 * static_cast<std::size_t>(ranks));
  ready_.clear();
  somebody_ended_ = false;
  first_error_ = nullptr;
  for (int thread = 0; thread < 2 * ranks; ++thread) {
    const auto& main = thread < ranks ? rank_main : helper_main;
    at(thread).rank = thread % ranks;
    at(thread).fiber = std::make_unique<Fiber>([this, thread, &main] { live(thread, main); });
    ready_.push_back(thread);
  }
  current_ = outside;
  go_to(choose());
  threads_.clear();
  if (first_error_) std::rethrow_exception(first_error_);
}

int Scheduler::start_thread(std::function<void()> main) {
  const auto thread = static_cast<int>(threads_.size());
  Thread& started = threads_.emplace_back();
  started.rank = at(current_).rank;
  started.ended = at(current_).ended;
  started.fiber = std::make_unique<Fiber>(
      [this, thread, main = std::move(main)] { live(thread, [&main](int) { main(); }); });
  ready_.push_back(thread);
  return thread;
}

/// A thread of its process must be unwound before it.
bool Scheduler::unwinds_later(int thread) const {
  const bool is_helper = thread >= ranks_ && !is_started(thread);
  if (is_helper) return false;
  const int rank = threads_[static_cast<std::size_t>(thread)].rank;
  const int end = is_started(thread) ? thread : static_cast<int>(threads_.size());
  for (int i = 2 * ranks_; i < end; ++i) {
    const Thread& one = threads_[static_cast<std::size_t>(i)];
    if (one.rank == rank && one.state != State::finished) return true;
  }
  return false;
}

void Scheduler::live(int thread, const std::function<void(int)>& main) {
  try {
    if (!at(thread).ended) main(at(thread).rank);
  } catch (const Ended&) {
    // Its process is gone; nobody is told.
  } catch (...) {
    if (!first_error_) first_error_ = std::current_exception();
    end_all();
  }
  at(thread).state = State::finished;
  std::erase(ready_, thread);
  if (is_started(thread)) wake_process(at(thread).rank);
  const int next = choose();
  Fiber& leaving = *at(thread).fiber;
  current_ = next;
  leaving.leave_for(next == outside ? outside_ : *at(next).fiber);
}

void Scheduler::throw_if_ended() {
  if (std::uncaught_exceptions() > 0 || !at(current_).ended) return;
  while (unwinds_later(current_)) {
    at(current_).state = State::blocked;
    std::erase(ready_, current_);
    go_to(choose());
  }
  throw Ended();
}

void Scheduler::yield() {
  if (std::uncaught_exceptions() > 0) return;
  now_us_ += 1 + static_cast<std::int64_t>(chance_.below(longest_step_us));
  if (chance_.one_in(calls_per_switch_)) go_to(choose());
  throw_if_ended();
}

void Scheduler::block() { wait_as(State::blocked); }

void Scheduler::sleep_us(std::int64_t us) {
  at(current_).until_us = now_us_ + us;
  wait_as(State::sleeping);
}

void Scheduler::wait_as(State state) {
  if (std::uncaught_exceptions() > 0) return;
  throw_if_ended();
  at(current_).state = state;
  std::erase(ready_, current_);
  go_to(choose());
  throw_if_ended();
}

void Scheduler::make_ready(int thread) {
  if (at(thread).state != State::blocked && at(thread).state != State::sleeping) return;
  at(thread).state = State::ready;
  ready_.push_back(thread);
}

void Scheduler::wake(int rank) {
  if (at(rank).state == State::blocked) make_ready(rank);
}

void Scheduler::wake_process(int rank) {
  wake(rank);
  for (int thread = 2 * ranks_; thread < static_cast<int>(threads_.size()); ++thread)
    if (at(thread).rank == rank) wake(thread);
}

void Scheduler::end(int rank) {
  somebody_ended_ = true;
  for (int thread = 0; thread < static_cast<int>(threads_.size()); ++thread) {
    if (at(thread).rank != rank) continue;
    at(thread).ended = true;
    make_ready(thread);
  }
}

void Scheduler::end_all() {
  for (int rank = 0; rank < ranks_; ++rank) end(rank);
}

void Scheduler::go_to(int next) {
  if (next == current_) return;
  Fiber& from = current_ == outside ? outside_ : *at(current_).fiber;
  current_ = next;
  from.switch_to(next == outside ? outside_ : *at(next).fiber);
}

int Scheduler::choose() {
  wake_sleepers();
  if (ready_.empty()) resolve_standstill();
  return ready_.empty() ? outside : ready_[chance_.below(ready_.size())];
}

bool Scheduler::wake_sleepers() {
  for (int thread = 0; thread < static_cast<int>(threads_.size()); ++thread)
    if (at(thread).state == State::sleeping && at(thread).until_us <= now_us_) make_ready(thread);
  return !ready_.empty();
}

/// Nobody can go on now: time passes until a sleeper wakes; else it is the end.
void Scheduler::resolve_standstill() {
  std::int64_t next_us = -1;
  bool anybody = false;
  for (const Thread& thread : threads_) {
    anybody = anybody || thread.state != State::finished;
    if (thread.state == State::sleeping && (next_us < 0 || thread.until_us < next_us))
      next_us = thread.until_us;
  }
  if (next_us >= 0) {
    now_us_ = next_us;
    wake_sleepers();
  } else if (anybody) {
    if (!somebody_ended_) first_error_ = std::make_exception_ptr(Deadlock());
    end_all();
  }
}

}  // namespace cairn::sim
