// Which checkpoints of the prefix directory a restart passes over, and why: in words.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "restart/restart_decision.hpp"

namespace cairn {

struct PassedOver {
  std::string newest;                 ///< why that one is; told by who starts from scratch
  std::vector<std::string> warnings;  ///< of the others
};

/// Of those begun after `offered`, zeros for none. `is_reason_known`: the log already says why the
/// run starts from scratch; the newest checkpoint is then a warning like the others. `tried`: the
/// checkpoints that this run has tried; the log already names them.
PassedOver passed_over(const RestartFacts& facts, const Settings& settings,
                       const std::set<Uuid>& tried, const Uuid& offered, bool is_reason_known);

}  // namespace cairn
