// cairn rebuild without a directory: rebuilds scavenged datasets, and publishes them.
#pragma once

#include <ostream>

#include "files/clock.hpp"
#include "tools/job_settings.hpp"
#include "tools/wanted_datasets.hpp"

namespace cairn {

/// With json: {"prefix", "datasets": [{"number", "name", "uuid", "ranks", "outcome": "published",
/// "there", "given_up", "uncommitted", "outlived", "lost", "refused", "newer" or "failed",
/// "reason", "rebuilt_ranks", "repaired_blocks", "repaired_bytes"}]}, oldest first.
struct PublishCommand {
  JobSettingsSource source;
  WantedDatasets datasets;  ///< none: all but checkpoints that a newer one has outlived
  bool force = false;       ///< the owner of the prefix directory is certainly dead
  bool run_ended = false;   ///< the last run of the job of the settings has certainly ended
  bool json = false;
};

/// Returns the exit code: 0 if every dataset that is wanted and was ever complete is in the prefix
/// directory now; exit_try_again if another process is scavenging now, or a job owns the directory;
/// 1 if one cannot be published, or was named and is nowhere.
int run_publish_command(const PublishCommand& command, Files& files, Clock& clock,
                        const ProcessFacts& process, std::ostream& out, const Log& log);

}  // namespace cairn
