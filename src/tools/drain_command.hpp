// cairn drain-node: finishes, on this node, the copies to the prefix directory that a dead run had
// begun.
#pragma once

#include <ostream>

#include "files/clock.hpp"
#include "tools/job_settings.hpp"

namespace cairn {

/// With list and json: {"datasets": [{"number", "uuid", "name", "ranks", "copied": of these, so
/// many parts are in the prefix directory}]}, those that a drain would finish. With json only:
/// {"node", "datasets": [{"number", "uuid", "name", "ranks": [whose parts this node holds],
/// "missing": [whose parts are not copied], "outcome": "published", "incomplete" or "failed",
/// "reason"}], "unreadable": [why a part of a cache could not be read], "left": [which caches were
/// not looked at, and why]}.
struct DrainCommand {
  JobSettingsSource source;
  bool list = false;       ///< only report what there is to do
  bool run_ended = false;  ///< the last run of the job has ended for certain
  bool json = false;
  bool bar = false;       ///< stderr is a terminal
  bool progress = false;  ///< print lines that say how many bytes are done
};

/// Returns the exit code: 0 if all parts that this node holds are copied; exit_try_again if a job
/// uses the caches or has taken over the prefix directory, or SCR_END_TIME has come; 1 on an error.
int run_drain_command(const DrainCommand& command, Files& files, Clock& clock,
                      const ProcessFacts& process, std::ostream& out, const Log& log);

}  // namespace cairn
