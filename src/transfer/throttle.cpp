#include "transfer/throttle.hpp"

#include <algorithm>

namespace cairn {

Throttle::Throttle(Clock& clock, std::uint64_t bytes_per_s)
    : clock_(clock), bytes_per_s_(bytes_per_s), free_at_us_(clock.steady_us()) {}

void Throttle::take(std::uint64_t bytes) {
  if (bytes_per_s_ == 0) return;
  constexpr std::int64_t saved_us = 100'000;
  const std::int64_t now_us = clock_.steady_us();
  free_at_us_ = std::max(free_at_us_, now_us - saved_us);
  if (free_at_us_ > now_us) clock_.sleep_us(free_at_us_ - now_us);
  free_at_us_ += static_cast<std::int64_t>(static_cast<double>(bytes) * 1e6 /
                                           static_cast<double>(bytes_per_s_));
}

}  // namespace cairn
