// Sealed bytes for the fuzzer, which would never guess a checksum.
#pragma once

#include "base/bytes.hpp"

namespace cairn::fuzz {

/// `content` with both checksums of every envelope made right, so that what the fuzzer changed in
/// its other fields reaches the decoder. A length that does not fit is left: no header is there.
Blob with_checksums_mended(Bytes content);

}  // namespace cairn::fuzz
