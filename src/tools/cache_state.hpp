// What caches still have of a dataset, for the commands that tell of it.
#pragma once

#include <string>
#include <vector>

#include "recovery/rebuild_sets.hpp"

namespace cairn {

struct CacheReport {
  Summary summary;
  CacheState state = CacheState::absent;  ///< for a run of the ranks asked about
  bool committed = false;                 ///< some rank has committed it; else the rest is empty
  std::vector<std::string> reasons;       ///< why it cannot be made whole, set by set
  std::vector<std::string> bad;  ///< what is not as it was, a line each, naming file or rank
  std::vector<int> absent;       ///< ranks without files
  std::vector<std::string> absent_nodes;  ///< where these ran
  bool damaged = false;                   ///< there is more in `bad` than of absent ranks
  std::string scheme;                     ///< "XOR" and the like, of the first set
  std::uint64_t bytes = 0;                ///< of all ranks
  std::uint64_t files = 0;

  bool can_be_whole() const { return committed && reasons.empty(); }
  bool is_whole() const { return can_be_whole() && bad.empty(); }
};

/// Looks at all that is left of it by the functions of the job, as that would with `ranks` ranks;
/// changes nothing. Reads all blocks with `read_everything`.
CacheReport look_at_cache(Files& files, const Remains& remains, std::uint32_t ranks,
                          const Settings& settings, bool read_everything, const Log& log);

}  // namespace cairn
