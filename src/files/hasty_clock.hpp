// A clock for tests that wait until a process counts as dead.
#pragma once

#include <atomic>
#include <memory>

#include "files/clock.hpp"

namespace cairn {

/// A sleep returns at once, and moves the time on.
class HastyClock : public Clock {
 public:
  std::int64_t now_us() override { return system_->now_us() + slept_us_; }
  std::int64_t steady_us() override { return system_->steady_us() + slept_us_; }
  void sleep_us(std::int64_t us) override { slept_us_ += us; }
  std::uint64_t random() override { return system_->random(); }

 private:
  std::unique_ptr<Clock> system_ = make_system_clock();
  std::atomic<std::int64_t> slept_us_ = 0;
};

}  // namespace cairn
