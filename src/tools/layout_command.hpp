// cairn layout: who is in which redundancy set, and who protects whom, before a job is started.
#pragma once

#include <ostream>
#include <string>

#include "tools/planned_job.hpp"

namespace cairn {

/// With json: what report_of_job() and add_sets() give.
struct LayoutCommand {
  bool json = false;
  PlannedJob job;
};

/// Returns the exit code: 0; 1 when a setting is wrong; 2 when an argument is.
int run_layout_command(const LayoutCommand& command, Files& files, ProcessFacts process,
                       std::ostream& out, const Log& log);

}  // namespace cairn
