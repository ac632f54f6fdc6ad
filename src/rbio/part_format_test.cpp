#include "rbio/part_format.hpp"

#include <gtest/gtest.h>

#include <span>

#include "base/checksum.hpp"
#include "rbio/done_marker.hpp"
#include "records/wire.hpp"

namespace cairn::rbio {
namespace {

const std::vector<FieldShape> shapes = {{"E", ElementType::float64, 3},
                                        {"flags", ElementType::uint8, 1}};

struct Part {
  PartHeader header;
  std::vector<RankEntry> entries;
  Blob table;
};

/// Two ranks; the first has more than one block of E, the second no flags.
Part make_part() {
  Part part;
  const std::vector<std::vector<std::uint64_t>> counts = {{20000, 5}, {7, 0}};
  std::uint64_t table_bytes = 0;
  for (const auto& count : counts) table_bytes += entry_bytes({count[0] * 24, count[1]});
  part.header = lay_out(shapes, {20007, 5}, table_bytes);
  part.header.step = 42;
  part.header.attempt = {3, 9};
  part.header.ranks = 2;
  std::vector<std::uint64_t> next = {part.header.fields[0].offset, part.header.fields[1].offset};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    RankEntry entry{rank, {}};
    for (std::size_t field = 0; field < 2; ++field) {
      const std::uint64_t bytes = counts[rank][field] * shapes[field].element_bytes();
      Piece piece{next[field], bytes, {}};
      for (std::uint64_t block = 0; block < blocks_in(bytes); ++block)
        piece.checksums.push_back(static_cast<std::uint32_t>(rank * 100 + field * 10 + block));
      next[field] += bytes;
      entry.pieces.push_back(piece);
    }
    const Blob encoded = encode_entry(entry);
    part.table.insert(part.table.end(), encoded.begin(), encoded.end());
    part.entries.push_back(entry);
  }
  return part;
}

TEST(PartFormat, AHeaderIsReadAsItWasWritten) {
  const Part part = make_part();
  const Blob encoded = encode_header(part.header);
  EXPECT_EQ(encoded.size(), header_capacity(shapes));
  const auto decoded = decode_header(encoded);
  ASSERT_TRUE(decoded) << decoded.error().text;
  EXPECT_EQ(*decoded, part.header);
}

TEST(PartFormat, ATableIsReadAsItWasWritten) {
  const Part part = make_part();
  EXPECT_EQ(part.table.size(), part.header.table_bytes);
  const auto decoded = decode_table(part.header, part.table);
  ASSERT_TRUE(decoded) << decoded.error().text;
  EXPECT_EQ(*decoded, part.entries);
}

TEST(PartFormat, NoTwoPlacesOfTheFileOverlap) {
  const Part part = make_part();
  std::uint64_t end = part.header.table_offset + part.header.table_bytes;
  EXPECT_EQ(part.header.table_offset % part_alignment, 0U);
  for (const FieldRegion& field : part.header.fields) {
    EXPECT_EQ(field.offset % part_alignment, 0U);
    EXPECT_GE(field.offset, end);
    end = field.offset + field.bytes();
  }
  EXPECT_EQ(part.header.file_bytes, end);
}

/// A header with this text, and right checksums.
Blob header_with_text(const std::string& text) {
  const Blob magic = encode_header(make_part().header);
  Encoder out;
  out.u32(1);
  out.u64(text.size());
  out.u32(crc32c(std::as_bytes(std::span(text))));
  out.u32(0);
  const Blob rest = out.take();
  Blob header(magic.begin(), magic.begin() + 8);
  header.insert(header.end(), rest.begin(), rest.end());
  Encoder last;
  last.u32(crc32c(header));
  for (const std::byte byte : last.take()) header.push_back(byte);
  for (const char letter : text) header.push_back(static_cast<std::byte>(letter));
  return header;
}

TEST(PartFormat, AHeaderIsReadOnlyAsItIsWritten) {
  const Blob encoded = encode_header(make_part().header);
  const std::string text(reinterpret_cast<const char*>(encoded.data()) + preamble_bytes,
                         encoded.size() - preamble_bytes);
  const std::string without_blanks = text.substr(0, text.find_last_not_of(' ') + 1);
  EXPECT_TRUE(decode_header(header_with_text(text)));
  EXPECT_FALSE(decode_header(header_with_text(text + " ")));
  EXPECT_FALSE(decode_header(header_with_text(without_blanks)));
  std::string other = text;
  other.replace(other.find("\"step\":42"), 9, "\"stop\":42");
  EXPECT_FALSE(decode_header(header_with_text(other)));
}

TEST(PartFormat, EachFlippedBitOfTheHeaderIsFound) {
  const Blob encoded = encode_header(make_part().header);
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    Blob damaged = encoded;
    damaged[i] ^= std::byte{0x10};
    EXPECT_FALSE(decode_header(damaged)) << "byte " << i;
  }
}

TEST(PartFormat, EachFlippedBitOfTheTableIsFound) {
  const Part part = make_part();
  for (std::size_t i = 0; i < part.table.size(); ++i) {
    Blob damaged = part.table;
    damaged[i] ^= std::byte{0x10};
    EXPECT_FALSE(decode_table(part.header, damaged)) << "byte " << i;
  }
}

TEST(PartFormat, WhatIsCutOffIsFound) {
  const Part part = make_part();
  const Blob encoded = encode_header(part.header);
  for (std::size_t size = 0; size < encoded.size(); ++size)
    EXPECT_FALSE(decode_header(Bytes(encoded).first(size)));
  for (std::size_t size = 0; size < part.table.size(); ++size)
    EXPECT_FALSE(decode_table(part.header, Bytes(part.table).first(size)));
}

TEST(PartFormat, ATableWhosePiecesLeaveAGapIsRefused) {
  Part part = make_part();
  part.entries[1].pieces[0].offset += 24;
  const Blob last = encode_entry(part.entries[1]);
  std::copy(last.begin(), last.end(), part.table.end() - static_cast<std::ptrdiff_t>(last.size()));
  EXPECT_FALSE(decode_table(part.header, part.table));
}

TEST(DoneMarker, IsReadAsItWasWrittenAndRefusesEveryFlippedBit) {
  const Blob encoded = encode(DoneMarker{3});
  EXPECT_EQ(*decode_done_marker(encoded), DoneMarker{3});
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    Blob damaged = encoded;
    damaged[i] ^= std::byte{0x10};
    EXPECT_FALSE(decode_done_marker(damaged)) << "byte " << i;
  }
  EXPECT_FALSE(decode_done_marker(encode(DoneMarker{0})));
}

TEST(PartFormat, AnEntryHasTheAnnouncedLength) {
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{1}, block_bytes, block_bytes + 1, 5 * block_bytes - 1}) {
    const RankEntry entry{0, {{4096, bytes, std::vector<std::uint32_t>(blocks_in(bytes))}}};
    EXPECT_EQ(encode_entry(entry).size(), entry_bytes({bytes}));
  }
}

}  // namespace
}  // namespace cairn::rbio
