// cairn layout: the redundancy sets, and which rank protects which, before a job is started.
#pragma once

#include <ostream>
#include <string>

#include "tools/planned_job.hpp"

namespace cairn {

/// With json: the facts of report_of_job() and add_sets().
struct LayoutCommand {
  bool json = false;
  PlannedJob job;
};

/// Returns the exit code: 0; 1 when a setting is wrong; 2 when an argument is.
int run_layout_command(const LayoutCommand& command, Files& files, ProcessFacts process,
                       std::ostream& out, const Log& log);

}  // namespace cairn
