// cairn job: the job whose caches the commands look for, for job control. In no list of commands.
#pragma once

#include <ostream>

#include "base/log.hpp"
#include "config/gather.hpp"
#include "files/clock.hpp"
#include "files/files.hpp"
#include "tools/job_settings.hpp"

namespace cairn {

/// Prints JSON. The exit code.
int run_job_command(const JobSettingsSource& source, Files& files, Clock& clock,
                    const ProcessFacts& process, std::ostream& out, const Log& log);

}  // namespace cairn
