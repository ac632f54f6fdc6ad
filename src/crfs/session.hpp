// The life of a mount.
#pragma once

#include <functional>
#include <memory>

#include "base/log.hpp"
#include "crfs/mount_options.hpp"
#include "crfs/redirection.hpp"

namespace cairn {

/// Begins what a mount with --scr needs, before it is mounted.
using StartJob = std::function<Result<std::unique_ptr<RedirectingJob>>(const MountOptions& options,
                                                                       const Log& log)>;

/// Mounts, and serves until the unmount, or until SIGTERM, SIGINT or SIGHUP. The parent of a
/// background process returns when the mount is ready. Returns the exit code: 1 if the mount
/// failed, or if data of a file were lost and no program received the error; else 0. All errors
/// have been logged.
/// `start_job` is called once, with the option --scr only.
int run_mount(const MountOptions& options, const StartJob& start_job);

}  // namespace cairn
