// When a checkpoint is due by the settings: what stands behind SCR_Need_checkpoint.
#pragma once

#include <cstdint>

#include "config/settings.hpp"

namespace cairn {

/// What rank 0 knows for it. All times are of Clock::steady_us().
class Cadence {
 public:
  Cadence(const Settings& settings, std::int64_t run_began_us)
      : interval_(settings.checkpoint_interval),
        seconds_(settings.checkpoint_seconds),
        overhead_percent_(settings.checkpoint_overhead),
        last_end_us_(run_began_us) {}

  /// False: by the settings, no call of SCR_Need_checkpoint is ever answered with yes.
  bool is_ever_due() const { return interval_ > 0 || seconds_ > 0 || overhead_percent_ > 0; }

  /// Counts a call of SCR_Need_checkpoint, and answers it. While the last checkpoint is being
  /// protected, a next one would have to wait for it: only the interval asks for one then.
  bool due(std::int64_t now_us, bool is_last_running = false);

  /// A checkpoint was made, at the cost of the time from Start to Complete.
  void made(std::int64_t started_us, std::int64_t ended_us);
  /// A checkpoint failed: the next one is not due before its time.
  void failed(std::int64_t ended_us) { last_end_us_ = ended_us; }

 private:
  bool is_cheap_enough(std::int64_t since_us) const;

  int interval_;
  int seconds_;
  double overhead_percent_;
  std::int64_t calls_ = 0;
  std::int64_t last_end_us_;
  std::int64_t cost_us_ = 0;  ///< of all that were made
  std::int64_t made_ = 0;
};

}  // namespace cairn
