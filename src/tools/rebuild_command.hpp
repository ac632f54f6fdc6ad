// cairn rebuild: rebuilds datasets that a dead job has left in the caches of its nodes.
#pragma once

#include <ostream>
#include <string>

#include "base/log.hpp"
#include "files/clock.hpp"
#include "files/files.hpp"
#include "tools/wanted_datasets.hpp"

namespace cairn {

/// With json: {"datasets": [{"number", "name", "uuid", "ranks", "outcome": "whole", "lost",
/// "uncommitted", "newer" or "failed", "reason", "rebuilt_ranks", "repaired_blocks",
/// "repaired_bytes", "folders": [one per rank, where whole]}]}, newest first.
struct RebuildCommand {
  std::string folder;  ///< absolute; the caches are in it, at any depth
  WantedDatasets datasets;
  bool json = false;
};

/// Works where the datasets lie; the parts of ranks that have none are made in FOLDER/rebuilt.
/// Returns the exit code: 0 if every dataset that was ever committed is whole now; 1 if one is not,
/// or if there is none; 75 if a job is alive in one of the caches.
int run_rebuild_command(const RebuildCommand& command, Files& files, Clock& clock,
                        std::ostream& out, const Log& log);

}  // namespace cairn
