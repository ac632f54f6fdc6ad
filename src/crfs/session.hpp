// A mount, from its beginning to its end.
#pragma once

#include "crfs/mount_options.hpp"

namespace cairn {

/// Mounts, and serves until it is unmounted, or SIGTERM, SIGINT or SIGHUP comes. In the background
/// returns as soon as the mount is there. The exit code: 0; 1 where it could not be mounted, or
/// data of a file could not be written and no program was told. What went wrong was told.
int run_mount(const MountOptions& options);

}  // namespace cairn
