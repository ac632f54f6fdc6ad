// cairn halt: asks jobs to stop, or takes that back.
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
/// "summary", "conditions": [lines], "note"}]}, null for what is not asked for; those prefix directories
/// that could be read.
struct HaltCommand {
  std::vector<std::string> prefixes;  ///< relative to the working folder; empty: as SCR_Init has it
  JobSettingsSource source;           ///< for the latter

  // As given on the command line.
  std::optional<std::string> checkpoints;
  std::optional<std::string> before;
  std::optional<std::string> after;
  std::optional<std::string> seconds;
  bool immediate = false;
  std::optional<std::string> reason;  ///< of the wish to stop, in place of JOB_HALTED

  bool unset_checkpoints = false;
  bool unset_before = false;
  bool unset_after = false;
  bool unset_seconds = false;
  bool unset_reason = false;

  bool list = false;    ///< change nothing
  bool remove = false;  ///< take everything back
  bool json = false;
  bool verbose = false;  ///< names the halt file
};

/// Started by `process`. With nothing to set, unset, list or remove, the job is to stop after its
/// next checkpoint. A `reason` takes no other wish's place, and with unset_reason only a wish of
/// that reason is taken back: so programs may ask beside users. Prints what is in force then.
/// Returns the exit code: 0; 1 if a halt file cannot be read or written, the others having been
/// changed; 2 for a wrong value or options that exclude each other, nothing having been.
int run_halt_command(const HaltCommand& command, Files& files, Clock& clock,
                     const ProcessFacts& process, std::ostream& out, const Log& log);

}  // namespace cairn
