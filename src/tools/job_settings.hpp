// The settings that SCR_Init would use, for commands that need them; and those of the job of the
// last run in a prefix directory, for commands that search its caches.
#pragma once

#include <optional>
#include <string>

#include "base/log.hpp"
#include "config/gather.hpp"
#include "config/resolve.hpp"
#include "records/last_run_record.hpp"

namespace cairn {

struct JobSettingsSource {
  std::string prefix;  ///< in place of SCR_PREFIX if not empty; relative to the working directory
  std::string system_path = system_settings_path();
};

/// The settings for a program started by `process`, with those that its last run made with
/// SCR_Config. Logs warnings.
Result<ResolvedSettings> read_job_settings(const JobSettingsSource& source, Files& files,
                                           ProcessFacts process, const Log& log);

/// The job whose caches a command uses, and the source of its id.
struct FoundJob {
  Settings settings;  ///< its id, its user, its stores, its control directory; the rest as above
  std::optional<LastRunRecord> last_run;
  std::string id_source;        ///< the source of the id, as text
  std::string other_job;        ///< the job of the present allocation, if it is another one
  std::string job_of_last_run;  ///< if SCR_JOB_ID names another job; last_run is empty then
  std::string trouble;          ///< why the record of the last run cannot be read
  bool is_id_default = false;   ///< neither the last run nor the user has given a job id

  /// "job 77 of ada (as its last run wrote down)"
  std::string text() const;
  /// The last run had ranks on the node.
  bool was_on(const std::string& node) const;
  /// The nodes of the last run were simulated on that host, and `settings` has all its stores: the
  /// job has no caches elsewhere.
  bool was_simulated_on(const std::string& host) const;
};

/// All commands find a job in this way. The environment has precedence, then the record of the last
/// run in the prefix directory, then the settings that SCR_Init would use.
Result<FoundJob> find_job(const JobSettingsSource& source, Files& files, ProcessFacts process,
                          const Log& log);

/// Like read_last_run, but fails if the prefix directory is a copy of the run's: its record is
/// valid for the other directory.
Result<std::optional<LastRunRecord>> last_run_of(Files& files, const std::string& prefix);

/// not_found if it is not a directory.
Status check_prefix_folder(Files& files, const std::string& prefix);

}  // namespace cairn
