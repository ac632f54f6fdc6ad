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

/// Of those begun after `offered`, zeros for none. `is_reason_known`: why the run starts from
/// scratch has been told, so that the newest is one of the others. `tried`: by this run. What was
/// tried has been told then.
PassedOver passed_over(const RestartFacts& facts, const Settings& settings,
                       const std::set<Uuid>& tried, const Uuid& offered, bool is_reason_known);

}  // namespace cairn
