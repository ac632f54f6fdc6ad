// The settings that SCR_Init would see, for commands that need them.
#pragma once

#include <string>

#include "base/log.hpp"
#include "config/gather.hpp"
#include "config/resolve.hpp"

namespace cairn {

struct JobSettingsSource {
  std::string prefix;  ///< in place of SCR_PREFIX if not empty; relative to the working folder
  std::string system_path = system_settings_path();
};

/// As started by `process`, with what the last run of the program has set by SCR_Config. Warnings
/// go to `log`.
Result<ResolvedSettings> read_job_settings(const JobSettingsSource& source, Files& files,
                                           ProcessFacts process, const Log& log);

/// not_found if it is no folder.
Status check_prefix_folder(Files& files, const std::string& prefix);

}  // namespace cairn
