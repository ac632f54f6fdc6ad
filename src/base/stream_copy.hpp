// Copies large data without replacing the program's data in the processor's caches.
#pragma once

#include "base/bytes.hpp"

namespace cairn {

/// Copies `from` to `to`, which has the same length and does not overlap it. If the processor can,
/// large copies go directly to memory: that saves reading the target first, and the program's data
/// stay in the caches. For data that are not read again soon.
void stream_copy(MutableBytes to, Bytes from);

}  // namespace cairn
