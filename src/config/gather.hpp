// From the process and the file system to the sources of settings.
#pragma once

#include <string>
#include <vector>

#include "config/sources.hpp"
#include "files/files.hpp"

namespace cairn {

/// Of the calling process.
ProcessFacts current_process();

/// Where the administrator's settings are, as chosen when Cairn was built.
std::string system_settings_path();

/// Reads the user's file (SCR_CONF_FILE, else .scrconf in the prefix directory) and the system's. A
/// file that is not there is none; for one that SCR_CONF_FILE names that is a warning.
Result<SettingSources> gather_sources(Files& files, const ProcessFacts& process,
                                      const std::vector<Entry>& app_entries,
                                      const std::string& system_path);

}  // namespace cairn
