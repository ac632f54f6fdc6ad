// From the process and the file system to the sources of settings.
#pragma once

#include <string>
#include <vector>

#include "config/sources.hpp"
#include "files/files.hpp"

namespace cairn {

/// The facts of the calling process.
ProcessFacts current_process();

/// The path of the administrator's file, chosen when Cairn was built.
std::string system_settings_path();

/// Reads the user's file (SCR_CONF_FILE, else .scrconf in the prefix directory) and the system's. A
/// missing file has no entries; resolve() warns if SCR_CONF_FILE names it.
Result<SettingSources> gather_sources(Files& files, const ProcessFacts& process,
                                      const std::vector<Entry>& app_entries,
                                      const std::string& system_path);

}  // namespace cairn
