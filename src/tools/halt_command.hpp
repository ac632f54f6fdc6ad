// cairn halt: requests jobs to stop, or withdraws requests.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "config/sources.hpp"
#include "files/clock.hpp"
#include "files/files.hpp"
#include "tools/job_settings.hpp"

namespace cairn {

/// With json: {"prefixes": [{"prefix", "checkpoints_left", "exit_before", "exit_before_s",
/// "exit_after", "exit_after_s", "halt_seconds", "reason", "immediate", "run", "ended", "file",
/// "summary", "conditions": [lines], "note"}]}, null for absent requests; only readable prefix
/// directories.
struct HaltCommand {
  std::vector<std::string> prefixes;  ///< relative to the working directory; empty: SCR_Init's
  JobSettingsSource source;           ///< for the latter

  // As given on the command line.
  std::optional<std::string> checkpoints;
  std::optional<std::string> before;
  std::optional<std::string> after;
  std::optional<std::string> seconds;
  bool immediate = false;
  std::optional<std::string> reason;  ///< of the request, in place of JOB_HALTED

  bool unset_checkpoints = false;
  bool unset_before = false;
  bool unset_after = false;
  bool unset_seconds = false;
  bool unset_reason = false;

  bool list = false;    ///< change nothing
  bool remove = false;  ///< withdraw everything
  bool json = false;
  bool verbose = false;  ///< print the path of the halt file
};

/// Started by `process`. Without anything to set, unset, list or remove, requests a stop after the
/// next checkpoint. A `reason` does not replace another request, and with unset_reason only a
/// request with that reason is withdrawn: so programs and users can use it independently. Prints
/// the requests in force afterwards. Returns the exit code: 0; 1 if a halt file cannot be read or
/// written, after changing the others; 2 for a wrong value or contradictory options, without any
/// change.
int run_halt_command(const HaltCommand& command, Files& files, Clock& clock,
                     const ProcessFacts& process, std::ostream& out, const Log& log);

}  // namespace cairn
