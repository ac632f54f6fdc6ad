// The part file of rbIO: header, table and done marker.
#include "rbio/part_format.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include "base/checksum.hpp"
#include "checksums.hpp"
#include "decoder.hpp"
#include "rbio/done_marker.hpp"
#include "rbio/generation.hpp"
#include "rbio/part_file.hpp"
#include "records/wire.hpp"

namespace cairn::fuzz {
namespace {

using namespace cairn::rbio;

/// Between the JSON text of a header and the table in an input.
constexpr char between = '|';
constexpr std::size_t checksum_bytes = sizeof(std::uint32_t);

bool same(Bytes a, Bytes b) { return text_of(a) == text_of(b); }

void put_checksum(MutableBytes at, Bytes covered) {
  Encoder out;
  out.u32(crc32c(covered));
  const Blob bytes = out.take();
  std::copy(bytes.begin(), bytes.end(), at.begin());
}

/// No fuzzer guesses checksums, or so many blanks: the text with both, as a file begins.
Blob file_of(std::string_view json) {
  const std::size_t whole = (preamble_bytes + json.size() + part_alignment - 1) / part_alignment;
  std::string text(json);
  text.resize(whole * part_alignment - preamble_bytes, ' ');
  Encoder out;
  out.u32(1);
  out.u64(text.size());
  out.u32(crc32c(std::as_bytes(std::span(text))));
  out.u32(0);
  Blob file = blob_of("CRNRBIO\n");
  const Blob rest = out.take();
  file.insert(file.end(), rest.begin(), rest.end());
  file.resize(preamble_bytes);
  put_checksum(MutableBytes(file).last(checksum_bytes),
               Bytes(file).first(preamble_bytes - checksum_bytes));
  const Blob content = blob_of(text);
  file.insert(file.end(), content.begin(), content.end());
  return file;
}

/// The entries with their checksums made right, as far as they fit.
Blob with_entries_mended(Bytes table, std::size_t fields) {
  Blob mended(table.begin(), table.end());
  MutableBytes rest = mended;
  const std::size_t fixed = sizeof(std::uint32_t) + 2 * sizeof(std::uint64_t) * fields;
  while (rest.size() >= fixed + checksum_bytes) {
    Decoder in(rest);
    in.u32();
    std::uint64_t blocks = 0;
    for (std::size_t field = 0; field < fields; ++field) {
      in.u64();
      blocks += std::min<std::uint64_t>(blocks_in(in.u64()), rest.size());
    }
    const std::size_t covered = fixed + blocks * checksum_bytes;
    if (rest.size() < covered + checksum_bytes) break;
    put_checksum(rest.subspan(covered), Bytes(rest).first(covered));
    rest = rest.subspan(covered + checksum_bytes);
  }
  return mended;
}

std::optional<PartHeader> check_header(Bytes file) {
  const auto header = decode_header(file);
  if (!header) return std::nullopt;
  const auto length = bytes_of_header(file);
  expect(length && *length <= file.size(), "a header that was decoded has a length");
  expect(same(encode_header(*header), file.first(*length)),
         "a header is encoded to the bytes it was decoded from");
  expect(header->table_offset == *length, "the table follows the header");
  expect(header->part < header->parts && header->ranks > 0, "part and ranks make sense");
  return *header;
}

void check_coverage(const PartHeader& header, const std::vector<RankEntry>& entries) {
  for (std::size_t field = 0; field < header.fields.size(); ++field) {
    std::uint64_t next = header.fields[field].offset;
    for (const RankEntry& entry : entries) {
      expect(entry.pieces[field].offset == next, "pieces follow each other");
      next += entry.pieces[field].bytes;
      expect(entry.pieces[field].checksums.size() == blocks_in(entry.pieces[field].bytes),
             "each block has a checksum");
    }
    expect(next == header.fields[field].offset + header.fields[field].bytes(),
           "the pieces cover their field");
  }
}

void check_table(const PartHeader& header, Bytes table) {
  const auto entries = decode_table(header, table);
  Blob whole = encode_header(header);
  whole.insert(whole.end(), table.begin(), table.end());
  const auto index = decode_index(whole, "part");
  expect(index.has_value() == entries.has_value(), "an index is whole if its table is");
  if (!entries) return;
  expect(index->header == header && index->entries == *entries, "an index is header and table");
  Blob again;
  for (const RankEntry& entry : *entries) {
    const Blob encoded = encode_entry(entry);
    again.insert(again.end(), encoded.begin(), encoded.end());
  }
  expect(same(again, table), "a table is encoded to the bytes it was decoded from");
  check_coverage(header, *entries);
}

/// The same fields, with room for a table of this length.
PartHeader with_table_of(const PartHeader& header, std::uint64_t bytes) {
  std::vector<FieldShape> shapes;
  std::vector<std::uint64_t> elements;
  for (const FieldRegion& field : header.fields) {
    shapes.push_back(field.shape);
    elements.push_back(field.elements);
  }
  PartHeader other = lay_out(shapes, elements, bytes);
  other.step = header.step;
  other.attempt = header.attempt;
  other.part = header.part;
  other.parts = header.parts;
  other.ranks = header.ranks;
  return other;
}

void check_marker(Bytes input) {
  const auto marker = decode_done_marker(input);
  if (marker)
    expect(same(encode(*marker), input), "a marker is encoded to what it was decoded from");
  const auto generation = decode_generation(input);
  if (generation)
    expect(same(encode_generation(*generation), input),
           "a generation is encoded to what it was decoded from");
}

PartHeader header_of_two_ranks() {
  PartHeader header = lay_out({{"E", ElementType::float64, 3}, {"flags", ElementType::uint8, 1}},
                              {20007, 5}, entry_bytes({480000, 5}) + entry_bytes({168, 0}));
  header.step = 42;
  header.attempt = {3, 9};
  header.ranks = 2;
  return header;
}

Blob table_of(const PartHeader& header) {
  const std::uint64_t e = header.fields[0].offset, flags = header.fields[1].offset;
  Blob table = encode_entry({0, {{e, 480000, {1, 2}}, {flags, 5, {3}}}});
  const Blob second = encode_entry({1, {{e + 480000, 168, {4}}, {flags + 5, 0, {}}}});
  table.insert(table.end(), second.begin(), second.end());
  return table;
}

std::string json_of(const PartHeader& header) {
  const Blob encoded = encode_header(header);
  std::string text(text_of(Bytes(encoded).subspan(preamble_bytes)));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

Blob input_of(const PartHeader& header, const Blob& table) {
  Blob input = blob_of(json_of(header) + between);
  input.insert(input.end(), table.begin(), table.end());
  return input;
}

}  // namespace

void check(Bytes input) {
  check_marker(input);
  check_marker(with_checksums_mended(input));
  check_header(input);
  const std::string_view text = text_of(input);
  const std::size_t end = std::min(text.find(between), text.size());
  const auto header = check_header(file_of(text.substr(0, end)));
  if (!header) return;
  const Bytes table = input.subspan(std::min(end + 1, input.size()));
  if (table.size() == header->table_bytes) check_table(*header, table);
  const PartHeader other = with_table_of(*header, table.size());
  check_table(other, table);
  check_table(other, with_entries_mended(table, header->fields.size()));
}

std::vector<Blob> seeds() {
  const PartHeader two = header_of_two_ranks();
  PartHeader none = lay_out({}, {}, entry_bytes({}));
  PartHeader one = lay_out({{"p", ElementType::complex128, 1}}, {1}, entry_bytes({16}));
  one.part = 1;
  one.parts = 2;
  return {input_of(two, table_of(two)), input_of(none, encode_entry({0, {}})),
          input_of(one, encode_entry({0, {{one.fields[0].offset, 16, {7}}}})),
          encode(DoneMarker{3}), encode(DoneMarker{1})};
}

}  // namespace cairn::fuzz
