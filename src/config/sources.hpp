// All sources of the settings, gathered in one place so that rank 0 can send them to the other
// ranks, and all compute the same settings.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "config/options.hpp"
#include "config/parser.hpp"

namespace cairn {

/// The environment and identity of a process.
struct ProcessFacts {
  std::map<std::string, std::string> environment;
  std::string host_name;
  std::string working_folder;
  std::uint32_t user_id = 0;
};

struct SettingsFile {
  std::string name;  ///< empty if there is no file
  std::vector<Entry> entries;
  std::vector<std::string> problems = {};  ///< for wrong lines
};

struct SettingSources {
  ProcessFacts process;  ///< its environment has only variables that concern settings
  SettingsFile user_file;
  std::vector<Entry> app_entries;  ///< from SCR_Config, in its order
  SettingsFile system_file;
};

/// True for SCR_*, CAIRN_*, and the variables that identify the user and the job.
bool concerns_settings(const std::string& variable);

/// The variables of `process`, which must outlive it.
Lookup environment_of(const ProcessFacts& process);

/// The value of an option in the environment, with variables replaced that no shell has replaced.
/// If a variable is not set, that is an error in a path, as the result would be another path; in
/// any other value the text stays unchanged.
Result<std::string> expanded(const Option& option, const std::string& value,
                             const ProcessFacts& process);

/// For the broadcast from rank 0.
Blob to_blob(const SettingSources& sources);
/// Fails with corrupt on bytes that to_blob() did not make.
Result<SettingSources> sources_from_blob(Bytes blob);

/// After a broadcast: replaces what differs between ranks (the host name, SCR_NODE_NAME) by the
/// values of this process. Fails with bad_setting like expanded().
Status take_own_facts(SettingSources& sources, const ProcessFacts& own);

}  // namespace cairn
