// The background threads of a simulated rank: a helper of the scheduler's for what is posted, and a
// thread of its own for each activity that goes on by itself.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "files/background.hpp"
#include "postboxes.hpp"
#include "scheduler.hpp"
#include "session/work_behind.hpp"

namespace cairn::sim {

/// How the threads that take steps by themselves are scheduled, those of idle priority and others.
struct Stepping {
  bool is_possible = false;   ///< else no thread can be started: the program takes the steps
  std::uint64_t late_us = 1;  ///< each step comes late, by less than this
  std::uint64_t seed = 0;
};

/// Calls a step again and again in a thread of the process that made this, until it is destroyed.
class SteppingThread final : public Repeated {
 public:
  SteppingThread(Scheduler& scheduler, Chance chance, std::uint64_t late_us,
                 std::function<std::int64_t()> step)
      : scheduler_(scheduler), work_(std::make_shared<Work>(Work{std::move(step)})) {
    thread_ = scheduler.start_thread([&scheduler, chance, late_us, work = work_]() mutable {
      std::int64_t pause_us = 0;
      while (!work->is_over) {
        work->rests = true;
        scheduler.sleep_us(pause_us + static_cast<std::int64_t>(chance.below(late_us)));
        work->rests = false;
        if (!work->is_over) pause_us = work->step();
      }
      work->has_ended = true;
    });
  }
  SteppingThread(const SteppingThread&) = delete;
  SteppingThread& operator=(const SteppingThread&) = delete;
  /// Waits for the thread. If the process ends meanwhile, the next call of its rank finds that.
  ~SteppingThread() override {
    work_->is_over = true;
    if (std::uncaught_exceptions() > 0) return;
    if (work_->rests) scheduler_.wake_sleeper(thread_);
    try {
      while (!work_->has_ended) scheduler_.block();
    } catch (const Ended&) {
      return;
    }
  }

 private:
  struct Work {
    std::function<std::int64_t()> step;
    bool rests = false;  ///< until the next step
    bool is_over = false;
    bool has_ended = false;
  };

  Scheduler& scheduler_;
  const std::shared_ptr<Work> work_;
  int thread_ = 0;
};

/// Where a process ends in the middle, its queue must outlive what the scheduler unwinds.
class HelperBackground final : public Background {
 public:
  HelperBackground(Scheduler& scheduler, int rank, Stepping stepping = {})
      : scheduler_(scheduler),
        rank_(rank),
        stepping_(stepping),
        chance_(stepping.seed + static_cast<std::uint64_t>(rank)) {}

  void post(std::uint64_t, std::function<void()> task) override {
    if (finished_) return task();
    tasks_.push_back(std::move(task));
    scheduler_.wake_helper(rank_);
  }

  void wait() override {
    while (!tasks_.empty()) scheduler_.block();
  }

  /// Nobody else is there whom signs of life could keep out.
  std::unique_ptr<Repeated> repeat(std::int64_t, std::function<void()>) override {
    return std::make_unique<Repeated>();
  }

  std::unique_ptr<Repeated> keep_stepping(std::function<std::int64_t()> step) override {
    if (!stepping_.is_possible) return nullptr;
    return std::make_unique<SteppingThread>(scheduler_, chance_.fork(), stepping_.late_us,
                                            std::move(step));
  }
  /// Not for the thread of the log, which waits for its lines where the scheduler does not see it:
  /// so the jobs write no log.
  std::unique_ptr<Repeated> keep_working(std::function<std::int64_t()> step) override {
    return keep_stepping(std::move(step));
  }

  /// The rank and its helper: who takes what is the scheduler's choice.
  void in_parallel(int threads, const std::function<void()>& work) override {
    if (threads <= 1) return work();
    post(0, work);
    work();
    wait();
  }

  /// By the rank, as its last act: the helper returns.
  void finish() {
    wait();
    finished_ = true;
    scheduler_.wake_helper(rank_);
  }

  /// What the helper does.
  void work() {
    while (true) {
      while (tasks_.empty()) {
        if (finished_) return;
        scheduler_.block();
      }
      tasks_.front()();
      tasks_.pop_front();
      scheduler_.wake_process(rank_);
    }
  }

 private:
  Scheduler& scheduler_;
  const int rank_;
  const Stepping stepping_;
  Chance chance_;
  std::deque<std::function<void()>> tasks_;  ///< the one that runs is the first
  bool finished_ = false;
};

/// Work of all ranks by their helpers.
class HelperWork final : public WorkBehind {
 public:
  HelperWork(HelperBackground& background, Communicator& comm)
      : background_(background), comm_(comm) {}

  void post(std::uint64_t bytes, Task task) override {
    background_.post(bytes, [&comm = comm_, task = std::move(task)] {
      try {
        task(comm, {});
      } catch (const CannotReach&) {
        return;  // the task knows
      }
    });
  }
  bool wait(std::chrono::milliseconds /*at_most*/) override {
    background_.wait();
    return true;
  }

 private:
  HelperBackground& background_;
  Communicator& comm_;
};

}  // namespace cairn::sim
