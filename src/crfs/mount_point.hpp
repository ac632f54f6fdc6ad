// Whether the files of a backing directory can be shown at a mount point.
#pragma once

#include <string>

#include "base/error.hpp"
#include "files/descriptor.hpp"

namespace cairn {

/// Local. `root` is the backing directory. Fails where the mount would hide another one, or the
/// backing directory, or where the daemon would come upon its own mount and wait for itself.
Status check_mount_point(const Descriptor& root, const std::string& backing,
                         const std::string& mountpoint);

}  // namespace cairn
