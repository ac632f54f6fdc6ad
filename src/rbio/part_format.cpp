#include "rbio/part_format.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "base/checksum.hpp"
#include "records/wire.hpp"

namespace cairn::rbio {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<char, 8> magic = {'C', 'R', 'N', 'R', 'B', 'I', 'O', '\n'};
constexpr std::uint32_t newest_version = 1;
constexpr std::uint64_t longest_header = std::uint64_t{64} << 20;
constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();

constexpr std::uint64_t aligned(std::uint64_t offset) {
  return (offset + part_alignment - 1) / part_alignment * part_alignment;
}

Json json_of(const FieldRegion& field) {
  return {{"name", field.shape.name},
          {"dtype", dtype_of(field.shape.type)},
          {"components", field.shape.components},
          {"offset", field.offset},
          {"elements", field.elements}};
}

std::string text_of_header(const PartHeader& header) {
  Json fields = Json::array();
  for (const FieldRegion& field : header.fields) fields.push_back(json_of(field));
  const Json json = {{"step", header.step},
                     {"attempt", text_of(header.attempt)},
                     {"part", header.part},
                     {"parts", header.parts},
                     {"ranks", header.ranks},
                     {"table_offset", header.table_offset},
                     {"table_bytes", header.table_bytes},
                     {"file_bytes", header.file_bytes},
                     {"block_bytes", block_bytes},
                     {"fields", fields}};
  return json.dump();
}

tl::unexpected<Error> corrupt(std::string_view what) {
  return fail(Code::corrupt, "is damaged: {}", what);
}

struct Preamble {
  std::uint32_t version = 0;
  std::uint64_t header_bytes = 0;
  std::uint32_t header_checksum = 0;
};

constexpr std::size_t checked_preamble_bytes = preamble_bytes - sizeof(std::uint32_t);

Blob encode(const Preamble& preamble) {
  Encoder out;
  out.u32(preamble.version);
  out.u64(preamble.header_bytes);
  out.u32(preamble.header_checksum);
  out.u32(0);
  Blob bytes(preamble_bytes);
  std::memcpy(bytes.data(), magic.data(), magic.size());
  const Blob rest = out.take();
  std::memcpy(bytes.data() + magic.size(), rest.data(), rest.size());
  const std::uint32_t checksum = crc32c(Bytes(bytes).first(checked_preamble_bytes));
  Encoder last;
  last.u32(checksum);
  const Blob end = last.take();
  std::memcpy(bytes.data() + checked_preamble_bytes, end.data(), end.size());
  return bytes;
}

Result<Preamble> decode_preamble(Bytes content) {
  if (content.size() < preamble_bytes) return corrupt("it ends within its first 32 bytes");
  if (std::memcmp(content.data(), magic.data(), magic.size()) != 0)
    return corrupt("it does not begin as a file of rbIO");
  Decoder check(content.subspan(checked_preamble_bytes, sizeof(std::uint32_t)));
  if (check.u32() != crc32c(content.first(checked_preamble_bytes)))
    return corrupt("the checksum of its first 32 bytes does not match");
  Decoder in(content.subspan(magic.size(), checked_preamble_bytes - magic.size()));
  Preamble preamble;
  preamble.version = in.u32();
  preamble.header_bytes = in.u64();
  preamble.header_checksum = in.u32();
  if (preamble.version > newest_version)
    return fail(Code::newer_format, "has format {}, and this version reads up to {}",
                preamble.version, newest_version);
  if (preamble.version == 0 || preamble.header_bytes > longest_header)
    return corrupt("its first 32 bytes make no sense");
  return preamble;
}

template <class Number>
Number number(const Json& json, const char* key) {
  const Json& value = json.at(key);
  if (!value.is_number_unsigned()) throw std::out_of_range(key);
  const auto number = value.get<std::uint64_t>();
  if (number > largest || number > std::numeric_limits<Number>::max()) throw std::out_of_range(key);
  return static_cast<Number>(number);
}

FieldRegion region_of(const Json& json) {
  FieldRegion field;
  field.shape.name = json.at("name").get<std::string>();
  const auto type = type_of_dtype(json.at("dtype").get<std::string>());
  if (!type) throw std::out_of_range("dtype");
  field.shape.type = *type;
  field.shape.components = number<std::uint32_t>(json, "components");
  field.offset = number<std::uint64_t>(json, "offset");
  field.elements = number<std::uint64_t>(json, "elements");
  if (!check_shape(field.shape)) throw std::out_of_range("name");
  if (field.elements > largest / field.shape.element_bytes()) throw std::out_of_range("elements");
  return field;
}

PartHeader header_of(const Json& json) {
  PartHeader header;
  header.step = number<std::uint64_t>(json, "step");
  const auto attempt = parse_attempt(json.at("attempt").get<std::string>());
  if (!attempt) throw std::out_of_range("attempt");
  header.attempt = *attempt;
  header.part = number<std::uint32_t>(json, "part");
  header.parts = number<std::uint32_t>(json, "parts");
  header.ranks = number<std::uint32_t>(json, "ranks");
  header.table_offset = number<std::uint64_t>(json, "table_offset");
  header.table_bytes = number<std::uint64_t>(json, "table_bytes");
  header.file_bytes = number<std::uint64_t>(json, "file_bytes");
  if (number<std::uint64_t>(json, "block_bytes") != block_bytes) throw std::out_of_range("block");
  for (const Json& field : json.at("fields")) header.fields.push_back(region_of(field));
  return header;
}

/// What lay_out() would have made of the same numbers.
bool fits_together(const PartHeader& header) {
  std::vector<FieldShape> shapes;
  std::vector<std::uint64_t> elements;
  std::uint64_t all_bytes = 0;
  for (const FieldRegion& field : header.fields) {
    shapes.push_back(field.shape);
    elements.push_back(field.elements);
    if (field.bytes() > largest - all_bytes - part_alignment) return false;
    all_bytes += field.bytes() + part_alignment;
  }
  if (header.part >= header.parts || header.ranks == 0 || shapes.size() > most_fields) return false;
  if (header.table_bytes > largest / 2 || all_bytes > largest / 2) return false;
  const PartHeader expected = lay_out(shapes, elements, header.table_bytes);
  return expected.fields == header.fields && expected.table_offset == header.table_offset &&
         expected.file_bytes == header.file_bytes;
}

/// One entry from the front of `table`, which is shortened by it.
Result<RankEntry> take_entry(const PartHeader& header, Bytes& table) {
  const std::size_t fixed =
      sizeof(std::uint32_t) + 2 * sizeof(std::uint64_t) * header.fields.size();
  if (table.size() < fixed) return corrupt("its table is cut off");
  Decoder in(table);
  RankEntry entry;
  entry.rank = in.u32();
  std::uint64_t blocks = 0;
  for (std::size_t i = 0; i < header.fields.size(); ++i) {
    Piece& piece = entry.pieces.emplace_back();
    piece.offset = in.u64();
    piece.bytes = in.u64();
    blocks += blocks_in(piece.bytes);
    if (blocks > table.size()) return corrupt("its table makes no sense");
  }
  const std::size_t length = fixed + (blocks + 1) * sizeof(std::uint32_t);
  if (table.size() < length) return corrupt("its table is cut off");
  for (Piece& piece : entry.pieces) {
    piece.checksums.resize(blocks_in(piece.bytes));
    for (std::uint32_t& checksum : piece.checksums) checksum = in.u32();
  }
  if (in.u32() != crc32c(table.first(length - sizeof(std::uint32_t))))
    return corrupt("a checksum of its table does not match");
  table = table.subspan(length);
  return entry;
}

bool lies_in(const Piece& piece, const FieldRegion& field) {
  return piece.bytes % field.shape.element_bytes() == 0 && piece.offset >= field.offset &&
         piece.bytes <= field.bytes() && piece.offset - field.offset <= field.bytes() - piece.bytes;
}

/// The pieces of a field, in the order of the file, cover its region without a gap.
bool is_covered(const FieldRegion& field, std::size_t index,
                const std::vector<RankEntry>& entries) {
  std::uint64_t next = field.offset;
  for (const RankEntry& entry : entries) {
    const Piece& piece = entry.pieces[index];
    if (!lies_in(piece, field) || piece.offset != next) return false;
    next += piece.bytes;
  }
  return next == field.offset + field.bytes();
}

}  // namespace

std::uint64_t header_capacity(const std::vector<FieldShape>& shapes) {
  PartHeader widest;
  widest.attempt = {largest, largest};
  widest.step = widest.table_offset = widest.table_bytes = widest.file_bytes = largest;
  widest.part = widest.parts = widest.ranks = std::numeric_limits<std::uint32_t>::max();
  for (const FieldShape& shape : shapes) widest.fields.push_back({shape, largest, largest});
  return aligned(preamble_bytes + text_of_header(widest).size());
}

PartHeader lay_out(const std::vector<FieldShape>& shapes,
                   const std::vector<std::uint64_t>& elements, std::uint64_t table_bytes) {
  PartHeader header;
  header.table_offset = header_capacity(shapes);
  header.table_bytes = table_bytes;
  std::uint64_t next = header.table_offset + table_bytes;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const FieldRegion& field =
        header.fields.emplace_back(FieldRegion{shapes[i], aligned(next), elements[i]});
    next = field.offset + field.bytes();
  }
  header.file_bytes = next;
  return header;
}

std::uint64_t entry_bytes(const std::vector<std::uint64_t>& piece_bytes) {
  const std::uint64_t blocks = std::accumulate(
      piece_bytes.begin(), piece_bytes.end(), std::uint64_t{0},
      [](std::uint64_t sum, std::uint64_t bytes) { return sum + blocks_in(bytes); });
  return sizeof(std::uint32_t) + 2 * sizeof(std::uint64_t) * piece_bytes.size() +
         (blocks + 1) * sizeof(std::uint32_t);
}

std::vector<std::uint32_t> checksums_of(Bytes piece) {
  std::vector<std::uint32_t> checksums;
  for (std::size_t at = 0; at < piece.size(); at += block_bytes)
    checksums.push_back(crc32c(piece.subspan(at, std::min(block_bytes, piece.size() - at))));
  return checksums;
}

Blob encode_header(const PartHeader& header) {
  std::vector<FieldShape> shapes;
  for (const FieldRegion& field : header.fields) shapes.push_back(field.shape);
  std::string text = text_of_header(header);
  // Blanks are white space in JSON, so the text may be longer than its content.
  text.resize(header_capacity(shapes) - preamble_bytes, ' ');
  const Bytes content = std::as_bytes(std::span(text));
  Blob out = encode(Preamble{newest_version, text.size(), crc32c(content)});
  out.insert(out.end(), content.begin(), content.end());
  return out;
}

Blob encode_entry(const RankEntry& entry) {
  Encoder out;
  out.u32(entry.rank);
  for (const Piece& piece : entry.pieces) {
    out.u64(piece.offset);
    out.u64(piece.bytes);
  }
  for (const Piece& piece : entry.pieces)
    for (const std::uint32_t checksum : piece.checksums) out.u32(checksum);
  Blob bytes = out.take();
  Encoder last;
  last.u32(crc32c(bytes));
  const Blob end = last.take();
  bytes.insert(bytes.end(), end.begin(), end.end());
  return bytes;
}

Result<std::uint64_t> bytes_of_header(Bytes preamble) {
  CAIRN_ASSIGN(const Preamble decoded, decode_preamble(preamble));
  return preamble_bytes + decoded.header_bytes;
}

Result<PartHeader> decode_header(Bytes content) {
  CAIRN_ASSIGN(const Preamble preamble, decode_preamble(content));
  if (content.size() < preamble_bytes + preamble.header_bytes)
    return corrupt("its header is cut off");
  const std::size_t end = preamble_bytes + preamble.header_bytes;
  const Bytes text = content.first(end).subspan(preamble_bytes);
  if (crc32c(text) != preamble.header_checksum)
    return corrupt("the checksum of its header does not match");
  try {
    PartHeader header =
        header_of(Json::parse(reinterpret_cast<const char*>(text.data()),
                              reinterpret_cast<const char*>(text.data() + text.size())));
    // The text is as encode_header() makes it: no key is there twice, and none is unknown.
    if (fits_together(header) && std::ranges::equal(encode_header(header), content.first(end)))
      return header;
  } catch (const std::exception&) {  // of the parser, or an entry that is missing or out of range
  }
  return corrupt("its header makes no sense");
}

Result<std::vector<RankEntry>> decode_table(const PartHeader& header, Bytes table) {
  if (table.size() != header.table_bytes) return corrupt("its table is cut off");
  std::vector<RankEntry> entries;
  while (!table.empty()) {
    CAIRN_ASSIGN(RankEntry entry, take_entry(header, table));
    if (entry.rank >= header.ranks || (!entries.empty() && entries.back().rank >= entry.rank))
      return corrupt("its table makes no sense");
    entries.push_back(std::move(entry));
  }
  for (std::size_t i = 0; i < header.fields.size(); ++i)
    if (!is_covered(header.fields[i], i, entries)) return corrupt("its table makes no sense");
  return entries;
}

}  // namespace cairn::rbio
