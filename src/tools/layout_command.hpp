// cairn layout: who is in which redundancy set, and who protects whom, before a job is started.
#pragma once

#include <ostream>
#include <string>

#include "tools/planned_job.hpp"

namespace cairn {

/// A line about the whole, then describe_sets().
std::string layout_table(const Layout& layout);

/// What descriptor_json() gives, and {"unprotected_ranks", "sets": [{"members": [{"rank", "node",
/// "left"}]}]}; "left" is the rank whose record, and with PARTNER data, the member keeps, null
/// where it is alone. Where all ranks share the store there are no sets.
std::string layout_json(const Layout& layout);

struct LayoutCommand {
  bool json = false;
  PlannedJob job;
};

/// Returns the exit code: 0; 1 when a setting is wrong; 2 when an argument is.
int run_layout_command(const LayoutCommand& command, Files& files, ProcessFacts process,
                       std::ostream& out, const Log& log);

}  // namespace cairn
