// The settings that SCR_Init would see, for commands that need them; and those of the job that the
// last run of a prefix directory was of, for commands that look for what it left.
#pragma once

#include <optional>
#include <string>

#include "base/log.hpp"
#include "config/gather.hpp"
#include "config/resolve.hpp"
#include "records/last_run_record.hpp"

namespace cairn {

struct JobSettingsSource {
  std::string prefix;  ///< in place of SCR_PREFIX if not empty; relative to the working folder
  std::string system_path = system_settings_path();
};

/// As started by `process`, with what the last run of the program has set by SCR_Config. Warnings
/// go to `log`.
Result<ResolvedSettings> read_job_settings(const JobSettingsSource& source, Files& files,
                                           ProcessFacts process, const Log& log);

/// The job whose caches a command looks for, and how that is known.
struct FoundJob {
  Settings settings;  ///< its id, its user, its stores, its control directory; the rest as above
  std::optional<LastRunRecord> last_run;
  std::string id_source;        ///< how the id is known, for people
  std::string other_job;        ///< of the allocation that this command runs in, if it is another
  std::string job_of_last_run;  ///< where SCR_JOB_ID names another: last_run is empty then
  std::string trouble;          ///< why what the last run wrote down cannot be read
  bool is_id_default = false;   ///< neither the last run nor the user named a job

  /// "job 77 of ada (as its last run wrote down)"
  std::string text() const;
  /// The last run had ranks on the node.
  bool was_on(const std::string& node) const;
  /// The nodes of the last run were only names on that host, and `settings` has all its stores: the
  /// job has no cache elsewhere.
  bool was_simulated_on(const std::string& host) const;
};

/// The one way in which commands find a job. What the environment sets counts first, then what the
/// last run wrote down in the prefix directory, then what SCR_Init would see.
Result<FoundJob> find_job(const JobSettingsSource& source, Files& files, ProcessFacts process,
                          const Log& log);

/// As read_last_run, but an error where the prefix directory is a copy of that of the run: what the
/// run wrote down is true of the other directory.
Result<std::optional<LastRunRecord>> last_run_of(Files& files, const std::string& prefix);

/// not_found if it is no folder.
Status check_prefix_folder(Files& files, const std::string& prefix);

}  // namespace cairn
