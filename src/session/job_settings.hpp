// The settings of a job, the same on all ranks.
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "config/resolve.hpp"
#include "files/files.hpp"

namespace cairn {

/// Collective. Rank 0 reads the sources, all ranks work out the same; only the node's name is each
/// rank's own. `app_entries` are equal on all ranks. Errors are agreed.
Result<ResolvedSettings> resolve_job_settings(Communicator& comm, Files& files,
                                              const std::vector<Entry>& app_entries);

}  // namespace cairn
