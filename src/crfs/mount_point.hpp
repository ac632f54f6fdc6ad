// Checks whether a backing directory can be mounted at a mount point.
#pragma once

#include <string>

#include "base/error.hpp"
#include "files/descriptor.hpp"

namespace cairn {

/// Local. `root` is the backing directory. Fails if the mount would hide another mount or the
/// backing directory, or if the mount point lies below the backing directory: the daemon would wait
/// for itself.
Status check_mount_point(const Descriptor& root, const std::string& backing,
                         const std::string& mountpoint);

}  // namespace cairn
