// The background thread of a simulated rank: a helper of the scheduler's.
#pragma once

#include <deque>

#include "files/background.hpp"
#include "scheduler.hpp"

namespace cairn::sim {

/// Where a process ends in the middle, its queue must outlive what the scheduler unwinds.
class HelperBackground final : public Background {
 public:
  HelperBackground(Scheduler& scheduler, int rank) : scheduler_(scheduler), rank_(rank) {}

  void post(std::uint64_t, std::function<void()> task) override {
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

  /// The rank and its helper: who takes what is the scheduler's choice.
  void in_parallel(int threads, const std::function<void()>& work) override {
    if (threads > 1) post(0, work);
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
      scheduler_.wake(rank_);
    }
  }

 private:
  Scheduler& scheduler_;
  const int rank_;
  std::deque<std::function<void()>> tasks_;  ///< the one that runs is the first
  bool finished_ = false;
};

}  // namespace cairn::sim
