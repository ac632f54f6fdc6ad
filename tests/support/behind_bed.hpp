// Jobs whose checkpoints are protected while the program goes on.
#pragma once

#include <future>

#include "support/job_bed.hpp"

namespace cairn {

/// The jobs run in the ranks' own threads, in the call that completes the dataset, unless a test
/// gives the ranks threads.
inline std::unique_ptr<JobBed> behind_bed(const std::string& base = memory_base()) {
  auto bed = std::make_unique<JobBed>(base);
  bed->settings.checkpoints[0].behind = true;
  return bed;
}

inline bool concerns_parity(const FileOperation& operation) {
  const auto is_parity = [](std::string_view path) {
    return path.find("/parity.") != std::string_view::npos;
  };
  return is_parity(operation.path) || is_parity(operation.to);
}

/// SCR_Need_checkpoint says yes in each call, unless it must not.
inline void set_always_due(JobBed& bed) {
  bed.settings.checkpoint_seconds = 1;
  bed.clock = std::make_unique<SkewedClock>(1'000'000);
}

/// Holds back what the threads behind the ranks do.
class Held {
 public:
  explicit Held(JobRank& rank) {
    rank.background->post(1 << 20, [gate = open_.get_future().share()] { gate.wait(); });
  }
  void release() { open_.set_value(); }

 private:
  std::promise<void> open_;
};

}  // namespace cairn
