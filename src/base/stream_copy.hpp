// Copies of much data that leave the processor's caches to the program.
#pragma once

#include "base/bytes.hpp"

namespace cairn {

/// Copies `from` to `to`, which has the same length and does not overlap it. Large copies are
/// written straight to memory where the processor can: that saves reading the target first, and
/// what the program has in the caches stays there. For data that is not read again soon.
void stream_copy(MutableBytes to, Bytes from);

}  // namespace cairn
