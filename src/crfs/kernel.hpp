// What is asked of the kernel beside what libfuse asks.
#pragma once

#include <string>

#include "crfs/fuse.hpp"

namespace cairn {

/// After the session was mounted, before it is served.
void ask_kernel_for_more(fuse_session* session);

/// Where the daemon may, lets the kernel's cache of the mount read ahead, and keep what is to be
/// written, as that of another file system.
void tune_cache(const std::string& mountpoint);

}  // namespace cairn
