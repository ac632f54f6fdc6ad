// cairn scavenge-node: saves what this node's caches hold of a dead job to the prefix directory.
#pragma once

#include <ostream>

#include "files/clock.hpp"
#include "tools/job_settings.hpp"
#include "tools/wanted_datasets.hpp"

namespace cairn {

/// With list and json: {"node", "datasets": [{"number", "uuid", "name", "checkpoint", "output",
/// "ranks", "bytes", "parts": [ranks whose files are here], "in_prefix",
/// "outlived": a newer checkpoint is in the prefix directory, "shared": in a store that all nodes
/// share}]}, newest first. With json
/// only: {"node", "datasets": [{"number", "uuid", "name"}], "bytes", "saved_bytes", "bad_blocks"}.
struct ScavengeCommand {
  JobSettingsSource source;
  WantedDatasets datasets;  ///< none: what the prefix directory does not have, and needs
  bool list = false;        ///< only print what there is
  bool json = false;
  bool bar = false;       ///< stderr is a terminal
  bool progress = false;  ///< print lines with the number of bytes that are done
};

/// Returns the exit code: 0 if all that is wanted was copied; exit_try_again if a job runs with the
/// caches, another process scavenges this node, or SCR_END_TIME has come: what was copied stays,
/// and the next try goes on; 1 on an error, or if something that is wanted is not here.
int run_scavenge_command(const ScavengeCommand& command, Files& files, Clock& clock,
                         const ProcessFacts& process, std::ostream& out, const Log& log);

}  // namespace cairn
