#include "checksums.hpp"

#include <string_view>

#include "base/checksum.hpp"
#include "records/wire.hpp"

namespace cairn::fuzz {
namespace {

// docs/format/envelope.md
constexpr std::string_view magic = "CAIRNREC";
constexpr std::size_t length_at = 16;
constexpr std::size_t payload_crc_at = 24;
constexpr std::size_t header_crc_at = 28;
constexpr std::size_t header_bytes = 32;

void put_u32(MutableBytes at, std::uint32_t value) {
  Encoder out;
  out.u32(value);
  const Blob bytes = out.take();
  std::memcpy(at.data(), bytes.data(), bytes.size());
}

/// How long the envelope is that `rest` begins with; 0 if there is none.
std::size_t envelope_bytes(Bytes rest) {
  if (rest.size() < header_bytes || std::memcmp(rest.data(), magic.data(), magic.size()) != 0)
    return 0;
  const std::uint64_t length = Decoder(rest.subspan(length_at)).u64();
  return length <= rest.size() - header_bytes ? header_bytes + length : 0;
}

}  // namespace

Blob with_checksums_mended(Bytes content) {
  Blob mended(content.begin(), content.end());
  MutableBytes rest = mended;
  while (!rest.empty()) {
    const std::size_t bytes = envelope_bytes(rest);
    if (bytes > 0) {
      put_u32(rest.subspan(payload_crc_at),
              crc32c(rest.subspan(header_bytes, bytes - header_bytes)));
      put_u32(rest.subspan(header_crc_at), crc32c(rest.first(header_crc_at)));
    }
    rest = rest.subspan(bytes > 0 ? bytes : 1);
  }
  return mended;
}

}  // namespace cairn::fuzz
