// The job of a mount with --scr: its nodes are the ranks, and the steps that programs write through
// it become datasets.
#pragma once

#include <memory>

#include "base/log.hpp"
#include "crfs/mount_options.hpp"
#include "crfs/redirection.hpp"

namespace cairn {

/// Restores the newest checkpoint: programs find its files as soon as the directory is mounted. On
/// several nodes it waits for the mounts of the others. Fails if there would be no checkpoints.
Result<std::unique_ptr<RedirectingJob>> start_mounted_job(const MountOptions& options,
                                                          const Log& log);

}  // namespace cairn
