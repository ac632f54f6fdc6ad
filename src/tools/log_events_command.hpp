// cairn log-events: what job control has to tell of a job goes into the log of the job, written by
// what knows the form of its lines. For python/cairn only, and in no list of commands.
#pragma once

#include <istream>

#include "base/log.hpp"
#include "files/clock.hpp"
#include "files/files.hpp"
#include "tools/job_settings.hpp"

namespace cairn {

/// To the end of `in`, of which each line is an event as JSON: {"event", "note", "seconds"},
/// without the last one where it took no time. A line is written as soon as it comes, into the logs
/// that the settings ask for; where these ask for none, or Cairn is switched off, nothing is read.
/// A run that has a RUN_START and no RUN_END when `in` ends gets one: whoever wrote the lines was
/// killed.
/// Returns the exit code: 0, also where the log cannot be written, which is a warning; 1 for
/// settings that are wrong and for a line that is no event.
int run_log_events_command(const JobSettingsSource& source, Files& files, Clock& clock,
                           const ProcessFacts& process, std::istream& in, const Log& log);

}  // namespace cairn
