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

Blob encode(const PrefixIdRecord& record) {
  Encoder out;
  out.u64(static_cast<std::uint64_t>(record.id));
  out.text(record.path);
  out.u64(record.inode);
  return seal(RecordType::prefix_id, prefix_id_version, out.take());
}

Result<PrefixIdRecord> decode_prefix_id_record(Bytes content) {
  CAIRN_ASSIGN(const Bytes payload, open_only(content, RecordType::prefix_id, prefix_id_version));
  Decoder in(payload);
  PrefixIdRecord record;
  record.id = PrefixId{in.u64()};
  record.path = in.text();
  record.inode = in.u64();
  const bool is_sound = !in.failed() && in.at_end() && record.id != PrefixId::none;
  if (!is_sound || !record.path.starts_with('/')) return fail_as_senseless();
  return record;
}

}  // namespace cairn
