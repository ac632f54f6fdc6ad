// Locks that somebody may hold for a moment only: to see who is at work, or because he is ending.
#pragma once

#include <memory>
#include <string>

#include "files/clock.hpp"
#include "files/files.hpp"

namespace cairn {

/// As Files::lock, but busy only if it is still held at `give_up_us` of the steady clock.
Result<std::unique_ptr<FileLock>> lock_patiently(Files& files, Clock& clock,
                                                 const std::string& path, std::int64_t give_up_us);

}  // namespace cairn
