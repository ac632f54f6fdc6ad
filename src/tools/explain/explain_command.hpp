// cairn explain: which dataset a restart would take, and why it would not take the others.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "files/clock.hpp"
#include "tools/job_settings.hpp"

namespace cairn {

/// With json: {"summary", "job", "where", "caches", "ranks", "outcome": "scratch", "cache", "prefix"
/// or "refused", "dataset": its UUID or null, "notes": [lines], "datasets": [{"place", "number",
/// "name", "uuid", "ranks", "taken", "usable", "only_written", "text", "to_do": [lines]}]}, newest
/// first.
struct ExplainCommand {
  JobSettingsSource source;
  std::vector<std::string> caches;    ///< absolute; replace those of the settings
  std::vector<std::string> datasets;  ///< names, numbers or UUIDs; all if empty
  std::uint32_t ranks = 0;            ///< of the run; 0: as many as wrote the newest dataset
  bool json = false;
};

/// Changes nothing. Returns the exit code: 0; 1 if the facts cannot be read, or there is no such
/// dataset.
int run_explain_command(const ExplainCommand& command, Files& files, Clock& clock,
                        const ProcessFacts& process, std::ostream& out, const Log& log);

}  // namespace cairn
