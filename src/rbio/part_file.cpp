#include "rbio/part_file.hpp"

#include <algorithm>
#include <array>

#include "base/checksum.hpp"
#include "rbio/series_names.hpp"

namespace cairn::rbio {
namespace {

/// A damaged file that ends too early is corrupt, not an io error.
Status read_at(File& file, const std::string& path, std::uint64_t offset, MutableBytes out) {
  CAIRN_ASSIGN(const std::uint64_t size, file.size());
  if (offset > size || out.size() > size - offset)
    return fail(Code::corrupt, "{} is damaged: it has {} bytes, and at least {} are expected", path,
                size, offset + out.size());
  return file.read_at(offset, out);
}

Error named(Error error, const std::string& path) {
  error.text = path + " " + error.text;
  return error;
}

Result<Blob> read_header_bytes(File& file, const std::string& path) {
  Blob bytes(preamble_bytes);
  CAIRN_TRY(read_at(file, path, 0, bytes));
  const auto length = bytes_of_header(bytes);
  if (!length) return tl::unexpected(named(length.error(), path));
  bytes.resize(*length);
  CAIRN_TRY(read_at(file, path, preamble_bytes, MutableBytes(bytes).subspan(preamble_bytes)));
  return bytes;
}

}  // namespace

Result<PartHeader> read_header(File& file, const std::string& path) {
  CAIRN_ASSIGN(const Blob bytes, read_header_bytes(file, path));
  auto header = decode_header(bytes);
  if (!header) return tl::unexpected(named(std::move(header).error(), path));
  return header;
}

Status check_step_of(const PartHeader& header, const std::string& step_path,
                     const std::string& path) {
  const auto named = parse_step_name(name_of_path(step_path));
  if (!named || *named == header.step) return {};
  return fail(Code::corrupt, "{} is a part of step {}, so its directory has a wrong name", path,
              header.step);
}

Result<Blob> read_index_bytes(File& file, const std::string& path) {
  CAIRN_ASSIGN(Blob bytes, read_header_bytes(file, path));
  auto header = decode_header(bytes);
  if (!header) return tl::unexpected(named(std::move(header).error(), path));
  CAIRN_ASSIGN(const std::uint64_t size, file.size());
  if (size != header->file_bytes)
    return fail(Code::corrupt, "{} is damaged: it has {} bytes, and {} were written", path, size,
                header->file_bytes);
  const std::size_t before = bytes.size();
  bytes.resize(before + header->table_bytes);
  CAIRN_TRY(read_at(file, path, header->table_offset, MutableBytes(bytes).subspan(before)));
  return bytes;
}

Result<PartIndex> decode_index(Bytes bytes, const std::string& path) {
  PartIndex index;
  auto header = decode_header(bytes);
  if (!header) return tl::unexpected(named(std::move(header).error(), path));
  index.header = *std::move(header);
  auto entries = decode_table(index.header, bytes.subspan(index.header.table_offset));
  if (!entries) return tl::unexpected(named(std::move(entries).error(), path));
  index.entries = *std::move(entries);
  return index;
}

Status read_piece(File& file, const std::string& path, const Piece& piece, std::uint64_t begin,
                  MutableBytes out) {
  const std::uint64_t end = begin + out.size();
  Blob whole;
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t block = at / block_bytes;
    const std::uint64_t block_begin = block * block_bytes;
    const std::uint64_t block_end = std::min(block_begin + block_bytes, piece.bytes);
    const std::uint64_t until = std::min(end, block_end);
    MutableBytes wanted = out.subspan(at - begin, until - at);
    const bool is_whole = wanted.size() == block_end - block_begin;
    if (!is_whole) whole.resize(block_end - block_begin);
    const MutableBytes content = is_whole ? wanted : MutableBytes(whole);
    CAIRN_TRY(read_at(file, path, piece.offset + block_begin, content));
    if (crc32c(content) != piece.checksums[block])
      return fail(Code::corrupt, "{} is damaged: the checksum of bytes {} to {} does not match",
                  path, piece.offset + block_begin, piece.offset + block_end - 1);
    if (!is_whole)
      std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(at - block_begin), wanted.size(),
                  wanted.begin());
    at = until;
  }
  return {};
}

std::vector<ByteRange> gaps_of(const PartHeader& header) {
  std::vector<ByteRange> gaps;
  std::uint64_t at = header.table_offset + header.table_bytes;
  for (const FieldRegion& field : header.fields) {
    if (at < field.offset) gaps.push_back({at, field.offset});
    at = field.offset + field.bytes();
  }
  return gaps;
}

Status check_gap(File& file, const std::string& path, const ByteRange& gap) {
  std::array<std::byte, part_alignment> bytes{};
  const auto content = MutableBytes(bytes).first(gap.end - gap.begin);
  CAIRN_TRY(read_at(file, path, gap.begin, content));
  if (std::any_of(content.begin(), content.end(), [](std::byte b) { return b != std::byte{}; }))
    return fail(Code::corrupt, "{} is damaged: bytes {} to {} are not zero", path, gap.begin,
                gap.end - 1);
  return {};
}

Status check_gaps(File& file, const std::string& path, const PartHeader& header) {
  for (const ByteRange& gap : gaps_of(header)) CAIRN_TRY(check_gap(file, path, gap));
  return {};
}

}  // namespace cairn::rbio
