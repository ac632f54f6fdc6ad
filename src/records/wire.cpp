#include "records/wire.hpp"

#include <algorithm>
#include <array>

#include "base/checksum.hpp"

namespace cairn {
namespace {

constexpr std::string_view magic = "CAIRNREC";
// magic, type, version, payload length, payload checksum, header checksum
constexpr std::size_t header_bytes = 8 + 4 + 4 + 8 + 4 + 4;

struct Header {
  std::uint32_t type;
  std::uint32_t version;
  std::uint64_t payload_bytes;
  std::uint32_t payload_crc;
};

std::optional<Header> read_header(Bytes content) {
  if (content.size() < header_bytes || std::memcmp(content.data(), magic.data(), magic.size()) != 0)
    return std::nullopt;
  Decoder in(content.subspan(magic.size()));
  const Header header{in.u32(), in.u32(), in.u64(), in.u32()};
  if (in.u32() != crc32c(content.first(header_bytes - 4))) return std::nullopt;
  return header;
}

}  // namespace

/// The width is a template argument for speed: some listings have ten thousand records.
template <std::size_t width>
void Encoder::integer(std::uint64_t value) {
  const std::size_t at = out_.size();
  out_.resize(at + width);
  for (std::size_t i = 0; i < width; ++i) out_[at + i] = static_cast<std::byte>(value >> (8 * i));
}

void Encoder::u32(std::uint32_t value) { integer<4>(value); }
void Encoder::u64(std::uint64_t value) { integer<8>(value); }

void Encoder::text(std::string_view value) {
  u32(static_cast<std::uint32_t>(value.size()));
  const Bytes bytes = std::as_bytes(std::span(value.data(), value.size()));
  out_.insert(out_.end(), bytes.begin(), bytes.end());
}

template <std::size_t width>
std::uint64_t Decoder::integer() {
  if (failed_ || in_.size() < width) {
    failed_ = true;
    return 0;
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) value |= static_cast<std::uint64_t>(in_[i]) << (8 * i);
  in_ = in_.subspan(width);
  return value;
}

std::uint32_t Decoder::u32() { return static_cast<std::uint32_t>(integer<4>()); }
std::uint64_t Decoder::u64() { return integer<8>(); }

std::string Decoder::text() {
  const std::uint64_t length = u32();
  if (failed_ || length > in_.size()) {
    failed_ = true;
    return {};
  }
  std::string value(reinterpret_cast<const char*>(in_.data()), length);
  in_ = in_.subspan(length);
  return value;
}

bool Decoder::boolean() {
  const std::uint32_t value = u32();
  if (value > 1) failed_ = true;
  return value == 1;
}

std::uint64_t Decoder::count(std::size_t element_bytes) {
  const std::uint64_t value = u64();
  if (value > in_.size() / element_bytes) failed_ = true;
  return failed_ ? 0 : value;
}

Blob seal(RecordType type, std::uint32_t version, Bytes payload) {
  Encoder out;
  out.u32(static_cast<std::uint32_t>(type));
  out.u32(version);
  out.u64(payload.size());
  out.u32(crc32c(payload));
  const Blob fields = out.take();
  Blob sealed;
  sealed.reserve(header_bytes + payload.size());
  sealed.resize(magic.size());
  std::memcpy(sealed.data(), magic.data(), magic.size());
  sealed.insert(sealed.end(), fields.begin(), fields.end());
  Encoder check;
  check.u32(crc32c(sealed));
  const Blob crc = check.take();
  sealed.insert(sealed.end(), crc.begin(), crc.end());
  sealed.insert(sealed.end(), payload.begin(), payload.end());
  return sealed;
}

Result<Bytes> open_only(Bytes content, RecordType type, std::uint32_t newest) {
  const auto found = find_envelopes(content);
  if (found.size() != 1 || found[0].whole.size() != content.size() || found[0].type != type ||
      found[0].version == 0)
    return fail(Code::corrupt, "its content is damaged");
  if (found[0].version > newest)
    return fail(Code::newer_format,
                "written in format {} by a newer Cairn; this one reads up to {}: use the newer one",
                found[0].version, newest);
  return found[0].payload;
}

tl::unexpected<Error> fail_as_senseless() {
  return fail(Code::corrupt, "the record is intact, but its fields contradict each other");
}

std::vector<Envelope> find_envelopes(Bytes content) {
  std::vector<Envelope> found;
  while (content.size() >= header_bytes) {
    const auto header = read_header(content);
    if (!header || header->payload_bytes > content.size() - header_bytes) {
      content = content.subspan(1);
      continue;
    }
    const Bytes payload = content.subspan(header_bytes, header->payload_bytes);
    if (crc32c(payload) == header->payload_crc)
      found.push_back({static_cast<RecordType>(header->type), header->version, payload,
                       content.first(header_bytes + payload.size())});
    content = content.subspan(header_bytes + payload.size());
  }
  return found;
}

}  // namespace cairn
