// The test bed of a job whose prefix directory has checkpoints of SCR.
#pragma once

#include <map>
#include <string>

#include "support/job_bed.hpp"
#include "support/scr_prefix.hpp"

namespace cairn {

/// SCR's checkpoint N has a file "ckpt.N/rank_R" of each rank.
class ScrJobBed : public PrefixJobBed {
 public:
  ScrJobBed() { settings.flush_interval = 1; }

  /// The names and contents of all files there that are not Cairn's.
  std::map<std::string, std::string> left_by_scr() const;

  /// A run that restarts as restart_from_scr(). Returns the dataset, the same on all ranks, or 0.
  int restart_from_scr();

  ScrPrefix scr{settings.prefix};
};

std::string expected(int dataset, int rank);

/// Collective. Restarts; every rank compares its file. Returns the dataset, or 0.
int restart_from_scr(JobRank& rank);

}  // namespace cairn
