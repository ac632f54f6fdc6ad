// Everything the settings are worked out from, gathered in one place so that rank 0 can send it to
// the others and all work out the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "config/parser.hpp"

namespace cairn {

/// What a process knows of itself.
struct ProcessFacts {
  std::map<std::string, std::string> environment;
  std::string host_name;
  std::string working_folder;
  std::uint32_t user_id = 0;
};

struct SettingsFile {
  std::string name;  ///< empty: there is none
  std::vector<Entry> entries;
};

struct SettingSources {
  ProcessFacts process;  ///< its environment cut down to what concerns settings
  SettingsFile user_file;
  std::vector<Entry> app_entries;  ///< from SCR_Config, in its order
  SettingsFile system_file;
};

/// True for the variables that settings come from: SCR_*, CAIRN_*, and those that identify the user
/// and the job.
bool concerns_settings(const std::string& variable);

/// For the broadcast from rank 0.
Blob to_blob(const SettingSources& sources);
/// Fails with corrupt on bytes that to_blob did not make.
Result<SettingSources> sources_from_blob(Bytes blob);

/// After a broadcast: takes what differs between ranks (the host name, SCR_NODE_NAME) from this
/// process.
void take_own_facts(SettingSources& sources, const ProcessFacts& own);

}  // namespace cairn
