// Clocks that tests set.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "files/clock.hpp"

namespace cairn {

/// Goes `times` as fast as the system's clock, so that a wait of a minute is short. Its time of day
/// is `ahead_us` later.
class SkewedClock final : public Clock {
 public:
  explicit SkewedClock(std::int64_t times, std::int64_t ahead_us = 0)
      : times_(times), ahead_us_(ahead_us) {}
  std::int64_t now_us() override { return system_->now_us() + ahead_us_; }
  std::int64_t steady_us() override {
    return begun_us_ + times_ * (system_->steady_us() - begun_us_);
  }
  void sleep_us(std::int64_t us) override { system_->sleep_us(us / times_ + 1); }
  std::uint64_t random() override { return system_->random(); }

 private:
  const std::int64_t times_;
  const std::int64_t ahead_us_;
  const std::unique_ptr<Clock> system_ = make_system_clock();
  const std::int64_t begun_us_ = system_->steady_us();
};

/// Its steady time nearly stands still, unless a test lets it pass. Sleeps take little.
class MovedClock final : public Clock {
 public:
  std::int64_t now_us() override { return system_->now_us(); }
  std::int64_t steady_us() override { return passed_us_ + system_->steady_us() / 1000; }
  void sleep_us(std::int64_t us) override { system_->sleep_us(std::min(us, std::int64_t{1000})); }
  std::uint64_t random() override { return system_->random(); }
  void pass_seconds(std::int64_t seconds) { passed_us_ += seconds * 1'000'000; }

 private:
  std::atomic<std::int64_t> passed_us_ = 0;
  const std::unique_ptr<Clock> system_ = make_system_clock();
};

/// Each thread has a steady time of its own, which only its own sleeps pass. They take little.
class SleptClock final : public Clock {
 public:
  std::int64_t now_us() override { return system_->now_us(); }
  std::int64_t steady_us() override { return slept_us_; }
  void sleep_us(std::int64_t us) override {
    slept_us_ += us;
    system_->sleep_us(us / 100 + 1);
  }
  std::uint64_t random() override { return system_->random(); }

 private:
  static inline thread_local std::int64_t slept_us_ = std::int64_t{1} << 50;
  const std::unique_ptr<Clock> system_ = make_system_clock();
};

/// Stands still except during a sleep, when it calls `meanwhile`.
class SleepersClock final : public Clock {
 public:
  std::int64_t now_us() override { return now; }
  std::int64_t steady_us() override { return now; }
  void sleep_us(std::int64_t us) override {
    now += us;
    if (meanwhile) meanwhile();
  }
  std::uint64_t random() override { return 0; }
  std::int64_t now = std::int64_t{1} << 50;
  std::function<void()> meanwhile;
};

}  // namespace cairn
