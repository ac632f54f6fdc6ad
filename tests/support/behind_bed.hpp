// The test bed of jobs whose checkpoints are protected while the program goes on.
#pragma once

#include <future>

#include "support/job_bed.hpp"

namespace cairn {

class BehindBed : public JobBed {
 public:
  using JobBed::JobBed;
  /// The jobs run in the ranks' own threads, in the call that completes the dataset, unless a test
  /// gives the ranks threads.
  void set_behind() { settings.checkpoints[0].behind = true; }

  /// As save() and bring_back(), of all nodes, with the times of files.
  void save_with_times() { copy_with_times(node(""), aside()); }
  void bring_back_with_times() { copy_with_times(aside(), node("")); }

 private:
  std::string aside() const {
    return std::filesystem::path(node("")).parent_path().parent_path() / "exposed";
  }
  static void copy_with_times(const std::string& from, const std::string& to) {
    namespace fs = std::filesystem;
    fs::remove_all(to);
    fs::copy(from, to, fs::copy_options::recursive);
    for (const auto& entry : fs::recursive_directory_iterator(from))
      if (entry.is_regular_file())
        fs::last_write_time(fs::path(to) / fs::relative(entry.path(), from),
                            entry.last_write_time());
  }
};

inline std::unique_ptr<BehindBed> behind_bed(const std::string& base = JobBed::memory()) {
  auto bed = std::make_unique<BehindBed>(base);
  bed->set_behind();
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
