// The life of a mount.
#pragma once

#include "crfs/mount_options.hpp"

namespace cairn {

/// Mounts, and serves until the unmount, or until SIGTERM, SIGINT or SIGHUP. The parent of a
/// background process returns when the mount is ready. Returns the exit code: 1 if the mount
/// failed, or if data of a file were lost and no program received the error; else 0. All errors
/// have been logged.
int run_mount(const MountOptions& options);

}  // namespace cairn
