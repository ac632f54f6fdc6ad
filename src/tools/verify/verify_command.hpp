// cairn verify: reads every byte of datasets, and repairs what can be repaired.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "files/clock.hpp"
#include "tools/job_settings.hpp"
#include "tools/wanted_datasets.hpp"

namespace cairn {

/// With json: {"datasets": [{"place": a folder, "number", "name", "uuid", "ranks", "files",
/// "bytes", "state", "only_written": it has no checksums, "bad": [lines], "reasons": [lines],
/// "repaired": text, "replaced_by", "passed_over"}], "current_damage":
/// what is wrong with the name of the current checkpoint, or why it cannot be read}, newest first;
/// the state is one of Verified::State.
struct VerifyCommand {
  JobSettingsSource source;
  std::vector<std::string> caches;    ///< absolute; folders that hold caches, at any depth
  std::vector<std::string> datasets;  ///< names, numbers or UUIDs; all if empty
  bool repair = false;
  bool force = false;  ///< the user says that the owner of the prefix directory is dead
  bool json = false;
};

/// The result for one dataset.
struct Verified {
  enum class State {
    good,          ///< every byte is as it was written (restarts may still not use it)
    repairable,    ///< some bytes are damaged, and can be repaired
    repaired,      ///< some bytes were damaged, and are repaired
    changed,       ///< repairable after the user has moved away files that were changed
    lost,          ///< some bytes are damaged, and cannot be repaired
    replaced,      ///< in the prefix directory: a newer dataset has overwritten some of its files
    incomplete,    ///< in a cache: its run ended before it was complete, so nothing can be expected
    newer_format,  ///< in a cache: its records are in a newer format, and were not read
    written,       ///< in a cache: sizes and times are as they were; there are no checksums
    unreadable,    ///< in the prefix directory: one of its records cannot be read now
  };
  std::string place;
  std::uint64_t number = 0;
  std::string name;
  std::string uuid;
  std::uint32_t ranks = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  State state = State::good;
  bool is_only_written = false;      ///< in a cache: it is not protected, and has no checksums
  std::vector<std::string> bad;      ///< a line each
  std::vector<std::string> reasons;  ///< why it cannot be repaired
  std::string repaired;              ///< what was done
  std::string replaced_by;           ///< if it is replaced: the label of the newer one, if known
  std::string passed_over;           ///< why restarts do not use it, although its bytes are good
};

std::string_view name_of(Verified::State state);

/// Verifies what is in the caches where these are given and no prefix directory is; else what is in
/// the prefix directory, which then is repaired from the caches: those given, those of the job that
/// are seen here, and what was scavenged. Repairs only where no job runs. Returns the exit code.
int run_verify_command(const VerifyCommand& command, Files& files, Clock& clock,
                       const ProcessFacts& process, std::ostream& out, const Log& log);

}  // namespace cairn
