#include "records/prefix_id.hpp"

#include <fmt/format.h>

#include <charconv>

#include "records/wire.hpp"

namespace cairn {

std::string text_of(PrefixId id) { return fmt::format("{:016x}", static_cast<std::uint64_t>(id)); }

std::optional<PrefixId> parse_prefix_id(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number, 16);
  const PrefixId id{number};
  if (parsed.ec != std::errc() || id == PrefixId::none || text_of(id) != text) return std::nullopt;
  return id;
}

Blob encode(PrefixId id) {
  Encoder out;
  out.u64(static_cast<std::uint64_t>(id));
  return seal(RecordType::prefix_id, prefix_id_version, out.take());
}

Result<PrefixId> decode_prefix_id(Bytes content) {
  CAIRN_ASSIGN(const Bytes payload, open_only(content, RecordType::prefix_id, prefix_id_version));
  Decoder in(payload);
  const PrefixId id{in.u64()};
  if (in.failed() || !in.at_end() || id == PrefixId::none) return fail_as_senseless();
  return id;
}

}  // namespace cairn
