// Keeps a stream of bytes below a rate.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>

#include "files/clock.hpp"
#include "transfer/pace.hpp"

namespace cairn {

class Throttle {
 public:
  /// 0: no limit. What was not used of the rate is not saved up for more than a tenth of a second.
  /// `taken`: adds up what goes, for who watches; may be null. `pace`: of the threads
  /// that take; may be null. It is stopped at `end_us` of steady time.
  Throttle(Clock& clock, std::uint64_t bytes_per_s, std::atomic<std::uint64_t>* taken = nullptr,
           Pace* pace = nullptr, std::int64_t end_us = never);

  /// No more is to be taken: its pace was stopped, or its time is over.
  bool is_stopped() const {
    return (pace_ != nullptr && pace_->is_stopped()) ||
           (end_us_ != never && clock_.steady_us() >= end_us_);
  }
  /// Sleeps until `bytes` more may go, or until it is stopped. Several threads may share the rate.
  void take(std::uint64_t bytes);

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  void wait(std::int64_t us);

  Clock& clock_;
  std::uint64_t bytes_per_s_;
  std::atomic<std::uint64_t>* taken_;
  Pace* pace_;
  const std::int64_t end_us_;
  std::mutex mutex_;
  std::int64_t free_at_us_;  ///< when what was taken so far has gone at the rate; guarded
};

}  // namespace cairn
