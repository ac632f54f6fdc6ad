// A command that somebody gives on a node of a simulated job.
#pragma once

#include <string>

#include "config/sources.hpp"

namespace cairn {

/// What such a process finds around it: the job's own settings.
template <class AnyCluster>
ProcessFacts process_on(const AnyCluster& cluster, const std::string& node) {
  return {{{"USER", "tester"},
           {"SCR_JOB_ID", "job"},
           {"SCR_NODE_NAME", node},
           {"SCR_PREFIX", cluster.settings.prefix},
           {"SCR_CACHE_BASE", cluster.node("%n")},
           {"SCR_CNTL_BASE", cluster.node("%n")}},
          node,
          cluster.settings.prefix,
          1000};
}

}  // namespace cairn
