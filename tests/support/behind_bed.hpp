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
