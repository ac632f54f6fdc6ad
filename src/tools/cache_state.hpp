// The state of a dataset in caches, for commands that report it.
#pragma once

#include <string>
#include <vector>

#include "recovery/rebuild_sets.hpp"

namespace cairn {

struct CacheReport {
  Summary summary;
  CacheState state = CacheState::absent;  ///< for a run of the given number of ranks
  bool committed = false;                 ///< some rank has committed it; else the rest is empty
  std::vector<std::string> reasons;       ///< why it cannot be rebuilt, set by set
  std::vector<std::string> bad;           ///< damage, a line each, with the file or rank
  std::vector<int> absent;                ///< ranks without files
  std::vector<std::string> absent_nodes;  ///< the nodes of these ranks
  bool damaged = false;                   ///< `bad` has more than absent ranks
  bool is_only_written = false;           ///< some part has no checksums: it is not protected
  std::string scheme;                     ///< of the first set, for example "XOR"
  std::uint64_t bytes = 0;                ///< of all ranks
  std::uint64_t files = 0;

  /// Whole may also be what is only written: then sizes and times are as they were, and there are
  /// no checksums.
  bool can_be_whole() const { return committed && reasons.empty(); }
  bool is_whole() const { return can_be_whole() && bad.empty(); }
};

/// Examines the dataset with the functions of the job, as a run of `ranks` ranks would. Changes
/// nothing. Reads all blocks if `read_everything`.
CacheReport look_at_cache(Files& files, const Remains& remains, std::uint32_t ranks,
                          const Settings& settings, bool read_everything, const Log& log);

}  // namespace cairn
