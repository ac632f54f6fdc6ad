// Everything the settings are worked out from, gathered in one place so that rank 0 can send it to
// the others and all work out the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "config/options.hpp"
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
  std::vector<std::string> problems = {};  ///< of lines that are no entries
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

/// The variables of `process`, which must outlive it.
Lookup environment_of(const ProcessFacts& process);

/// The value of an option in the environment, its variables replaced where no shell has done so.
/// One that is not set would make a wrong path, perhaps that of another directory: an error there;
/// in any other value it stays as it is written.
Result<std::string> expanded(const Option& option, const std::string& value,
                             const ProcessFacts& process);

/// For the broadcast from rank 0.
Blob to_blob(const SettingSources& sources);
/// Fails with corrupt on bytes that to_blob did not make.
Result<SettingSources> sources_from_blob(Bytes blob);

/// After a broadcast: takes what differs between ranks (the host name, SCR_NODE_NAME) from this
/// process. Fails with bad_setting as expanded().
Status take_own_facts(SettingSources& sources, const ProcessFacts& own);

}  // namespace cairn
