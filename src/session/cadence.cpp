#include "session/cadence.hpp"

namespace cairn {

bool Cadence::due(std::int64_t now_us, bool is_last_running) {
  ++calls_;
  if (interval_ > 0 && calls_ % interval_ == 0) return true;
  if (is_last_running) return false;
  const std::int64_t since_us = now_us - last_end_us_;
  if (seconds_ > 0 && since_us >= seconds_ * std::int64_t{1'000'000}) return true;
  return overhead_percent_ > 0 && is_cheap_enough(since_us);
}

/// One checkpoint now would take less than the allowed part of the time since the last one. Where
/// nothing is known of the cost, one must be made to learn it.
bool Cadence::is_cheap_enough(std::int64_t since_us) const {
  if (made_ == 0) return true;
  const double cost_us = static_cast<double>(cost_us_) / static_cast<double>(made_);
  return 100 * cost_us / (static_cast<double>(since_us) + cost_us) < overhead_percent_;
}

void Cadence::made(std::int64_t started_us, std::int64_t ended_us) {
  last_end_us_ = ended_us;
  cost_us_ += ended_us - started_us;
  ++made_;
}

}  // namespace cairn
