// Linked in place of the checksums, to measure what they cost: all are 0, so no damage is found.
// All functions of checksum.cpp that the library calls are here, so that the linker needs none of
// it.
#include "base/checksum.hpp"

namespace cairn {

std::uint32_t crc32c(Bytes /*data*/, std::uint32_t /*before*/) { return 0; }
std::uint32_t crc32(Bytes /*data*/, std::uint32_t /*before*/) { return 0; }

}  // namespace cairn
