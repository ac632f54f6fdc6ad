#include "transfer/throttle.hpp"

#include <algorithm>

namespace cairn {

Throttle::Throttle(Clock& clock, std::uint64_t bytes_per_s, std::atomic<std::uint64_t>* taken,
                   Pace* pace, std::int64_t end_us)
    : clock_(clock),
      bytes_per_s_(bytes_per_s),
      taken_(taken),
      pace_(pace),
      end_us_(end_us),
      free_at_us_(clock.steady_us()) {}

void Throttle::take(std::uint64_t bytes) {
  if (pace_ != nullptr) pace_->wait_for_turn();
  if (taken_ != nullptr) *taken_ += bytes;
  if (bytes_per_s_ == 0) return;
  constexpr std::int64_t saved_us = 100'000;
  const auto takes_us = static_cast<std::int64_t>(static_cast<double>(bytes) * 1e6 /
                                                  static_cast<double>(bytes_per_s_));
  const std::int64_t now_us = clock_.steady_us();
  std::int64_t wait_us = 0;
  {
    const std::scoped_lock lock(
        mutex_);  // not while the clock is asked, which may let others go on
    free_at_us_ = std::max(free_at_us_, now_us - saved_us);
    wait_us = free_at_us_ - now_us;
    free_at_us_ += takes_us;
  }
  if (wait_us > 0) wait(wait_us);
}

/// In short pieces where it may be stopped meanwhile.
void Throttle::wait(std::int64_t us) {
  constexpr std::int64_t piece_us = 100'000;
  if (pace_ == nullptr && end_us_ == never) return clock_.sleep_us(us);
  const std::int64_t end_us = clock_.steady_us() + us;
  for (std::int64_t left_us = us; left_us > 0 && !is_stopped();
       left_us = end_us - clock_.steady_us())
    clock_.sleep_us(std::min(left_us, piece_us));
}

}  // namespace cairn
