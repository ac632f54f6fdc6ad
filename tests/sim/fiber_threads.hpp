// The threads of rbIO's writers as fibers: each runs beside its rank, on the scheduler's clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "rbio/threads.hpp"
#include "seam.hpp"

namespace cairn::sim {

class FiberMonitor final : public rbio::Monitor {
 public:
  explicit FiberMonitor(Seam& seam) : seam_(seam) {}

  void lock() override {
    seam_.pass("lock");
    while (is_locked_ && std::uncaught_exceptions() == 0) wait_in(before_lock_, forever);
    is_locked_ = true;
  }
  void unlock() override {
    is_locked_ = false;
    wake(before_lock_);
  }
  void wait_until(rbio::TimePoint limit) override {
    unlock();
    wait_in(before_change_, limit == rbio::TimePoint::max() ? forever : microseconds(limit));
    while (is_locked_ && std::uncaught_exceptions() == 0) wait_in(before_lock_, forever);
    is_locked_ = true;
  }
  void notify_all() override { wake(before_change_); }

  static std::int64_t microseconds(rbio::TimePoint time) {
    return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  }

 private:
  static constexpr std::int64_t forever = -1;

  void wait_in(std::vector<int>& queue, std::int64_t until_us) {
    Scheduler& scheduler = seam_.scheduler();
    const int thread = scheduler.current_thread();
    queue.push_back(thread);
    if (until_us == forever)
      scheduler.block();
    else
      scheduler.sleep_us(std::max<std::int64_t>(until_us - scheduler.now_us(), 0));
    std::erase(queue, thread);
  }
  void wake(const std::vector<int>& queue) {
    for (const int thread : queue) seam_.scheduler().wake_thread(thread);
  }

  Seam& seam_;
  bool is_locked_ = false;
  std::vector<int> before_lock_, before_change_;  ///< threads that wait
};

/// Of one rank.
class FiberThreads final : public rbio::Threads {
 public:
  /// `may_start` decides whether the process may have another thread.
  FiberThreads(Seam& seam, std::function<bool()> may_start)
      : seam_(seam), may_start_(std::move(may_start)) {}

  /// A process that has ended has no time left: what waits in it waits no more.
  rbio::TimePoint now() override {
    if (std::uncaught_exceptions() > 0)
      return rbio::TimePoint(std::chrono::hours(24 * 365 * ++years_after_end_));
    seam_.pass("now");
    return rbio::TimePoint(std::chrono::microseconds(seam_.scheduler().now_us()));
  }
  std::unique_ptr<rbio::Monitor> make_monitor() override {
    return std::make_unique<FiberMonitor>(seam_);
  }
  Result<std::unique_ptr<rbio::StartedThread>> start(std::function<void()> main) override {
    if (!may_start_()) return fail(Code::io, "there may be no more threads");
    auto thread = std::make_unique<Started>(seam_.scheduler(), was_detached_);
    seam_.scheduler().start_thread([main = std::move(main), has_ended = thread->has_ended] {
      main();
      *has_ended = true;
    });
    return thread;
  }
  void keep_until_exit(std::shared_ptr<void> kept) override { kept_.push_back(std::move(kept)); }
  /// A thread may still be there when its rank has returned from main().
  bool was_detached() const { return *was_detached_; }

 private:
  class Started final : public rbio::StartedThread {
   public:
    Started(Scheduler& scheduler, std::shared_ptr<bool> was_detached)
        : scheduler_(scheduler), was_detached_(std::move(was_detached)) {}
    void join() override {
      while (!*has_ended && std::uncaught_exceptions() == 0) scheduler_.block();
    }
    void detach() override { *was_detached_ = true; }

    const std::shared_ptr<bool> has_ended = std::make_shared<bool>(false);

   private:
    Scheduler& scheduler_;
    const std::shared_ptr<bool> was_detached_;
  };

  Seam& seam_;
  const std::function<bool()> may_start_;
  int years_after_end_ = 10;
  std::vector<std::shared_ptr<void>> kept_;
  const std::shared_ptr<bool> was_detached_ = std::make_shared<bool>(false);
};

}  // namespace cairn::sim
