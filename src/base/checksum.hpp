// CRC32C (Castagnoli, as in iSCSI, RFC 3720), and the common CRC32, by ISA-L.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace cairn {

/// CRC32C of `data`; crc32c("123456789") == 0xE3069283. Pass an earlier result as `before` to
/// continue over the next piece of the same stream.
std::uint32_t crc32c(Bytes data, std::uint32_t before = 0);

/// The CRC32 of zlib and gzip, for files of other programs; crc32("123456789") == 0xCBF43926.
std::uint32_t crc32(Bytes data, std::uint32_t before = 0);

/// CRC32C by a bitwise loop: the reference that tests compare against.
std::uint32_t crc32c_reference(Bytes data, std::uint32_t before = 0);

}  // namespace cairn
