// Linked in place of the checksums, to measure what they cost: all are 0, so no damage is found.
#include "base/checksum.hpp"

namespace cairn {

std::uint32_t crc32c(Bytes /*data*/, std::uint32_t /*before*/) { return 0; }

}  // namespace cairn
