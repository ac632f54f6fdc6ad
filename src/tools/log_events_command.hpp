// cairn log-events: writes events of job control into the log of the job. Only for python/cairn,
// and in no list of commands.
#pragma once

#include <istream>

#include "base/log.hpp"
#include "files/clock.hpp"
#include "files/files.hpp"
#include "tools/job_settings.hpp"

namespace cairn {

/// Reads `in` to its end. Each line is an event as JSON: {"event", "note", "seconds"}; "seconds"
/// may be absent. Writes each line at once into the logs that the settings enable; reads nothing if
/// they enable none, or Cairn is switched off. If `in` ends after a RUN_START without RUN_END, adds
/// a RUN_END, as the writer was killed. Returns the exit code: 0, also if the log cannot be
/// written, which is a warning; 1 for wrong settings and for a line that is no event.
int run_log_events_command(const JobSettingsSource& source, Files& files, Clock& clock,
                           const ProcessFacts& process, std::istream& in, const Log& log);

}  // namespace cairn
