// What `cairn drain` does on the nodes of a dead run, in the simulation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster.hpp"
#include "config/settings.hpp"
#include "seam.hpp"
#include "state_watch.hpp"

namespace cairn::sim {

struct DrainWorld {
  const Cluster& cluster;
  std::shared_ptr<Volume> prefix;
  Scheduler& scheduler;
  Seam& seam;
  StateWatch& watch;
  Trace& trace;
};

struct DrainPlan {
  static constexpr int all = -1;

  std::vector<std::string> nodes;  ///< one process each, at the same time
  std::uint64_t ends_after = 0;    ///< calls; processes are killed then. 0: none is
  int killed = all;                ///< or only the process of this one of the nodes
};

/// Drains the caches of these jobs on these nodes. Throws Violation if no process was killed, and a
/// part that one of them had, and could read, is not copied. False if one was killed.
bool drain_nodes(const DrainWorld& world, const std::vector<Settings>& jobs, const DrainPlan& plan,
                 Chance& chance);

}  // namespace cairn::sim
