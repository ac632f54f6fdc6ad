// cairn config: every setting in force, where it came from and what it means.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tools/job_settings.hpp"

namespace cairn {

/// With json: {"settings": [{"key", "value", "source", "help", "used"}], "warnings": [], "notes":
/// []}. For a terminal: a line with key, value and source, and the meaning below it; the settings
/// that are not used yet come last.
struct ConfigCommand {
  bool json = false;
  bool only_changed = false;
  std::vector<std::string> names;  ///< "SCR_DEBUG", or "CKPT=0" for all of a line; empty: all
  JobSettingsSource source;
};

/// Prints the settings as SCR_Init of `process` would read them. Returns the exit code: 0; 1 if a
/// setting is wrong; 2 if a name is no setting.
int run_config_command(const ConfigCommand& command, Files& files, const ProcessFacts& process,
                       std::ostream& out, const Log& log);

}  // namespace cairn
