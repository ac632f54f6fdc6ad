#include "base/checksum.hpp"

#include <isa-l/crc.h>

#include <algorithm>

#include "base/vector_registers.hpp"

namespace cairn {

std::uint32_t crc32c(Bytes data, std::uint32_t before) {
  // Short runs, with a prefetch a few KiB ahead: measurements show that this is faster from memory
  // than one long call. And an int length never overflows.
  constexpr std::size_t run_bytes = 512;
  constexpr std::size_t ahead_bytes = 4096;
  std::uint32_t crc = ~before;
  while (!data.empty()) {
    const std::size_t run = std::min(run_bytes, data.size());
    for (std::size_t at = 0; at < run; at += 64) {
      const std::size_t ahead = at + ahead_bytes;
      if (ahead < data.size()) __builtin_prefetch(data.data() + ahead);
    }
    auto* bytes = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(data.data()));
    crc = crc32_iscsi(bytes, static_cast<int>(run), crc);
    data = data.subspan(run);
  }
  clear_vector_registers();
  return ~crc;
}

std::uint32_t crc32(Bytes data, std::uint32_t before) {
  const std::uint32_t crc =
      crc32_gzip_refl(before, reinterpret_cast<const unsigned char*>(data.data()), data.size());
  clear_vector_registers();
  return crc;
}

std::uint32_t crc32c_reference(Bytes data, std::uint32_t before) {
  constexpr std::uint32_t polynomial = 0x82F63B78;  // reflected 0x1EDC6F41
  std::uint32_t crc = ~before;
  for (const std::byte byte : data) {
    crc ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
  }
  return ~crc;
}

}  // namespace cairn
