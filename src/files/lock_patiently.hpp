// Locks that another process may hold for a moment only: to check whether the lock is free, or
// because it is about to end.
#pragma once

#include <memory>
#include <string>

#include "files/clock.hpp"
#include "files/files.hpp"

namespace cairn {

/// Like Files::lock, but waits: fails with busy only if the lock is still held at `give_up_us` of
/// the steady clock.
Result<std::unique_ptr<FileLock>> lock_patiently(Files& files, Clock& clock,
                                                 const std::string& path, std::int64_t give_up_us);

}  // namespace cairn
