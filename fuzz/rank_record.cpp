// The rank record, and the arithmetic of blocks on what was decoded.
#include "records/rank_record.hpp"

#include <algorithm>

#include "decoder.hpp"
#include "real_records.hpp"
#include "records/wire.hpp"
#include "redundancy/replicas.hpp"

namespace cairn::fuzz {
namespace {

/// Every data block of the record's own rank has its checksum, if it is protected; together they
/// are its files.
void check_own_data(const RankRecord& record, const SetLayout& layout) {
  const int own = record.index_in_set();
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < layout.data_blocks(own); ++i) {
    expect(layout.data_length(own, i) > 0, "a data block has bytes");
    bytes += layout.data_length(own, i);
    const int position = layout.position_of_data(own, i);
    expect(layout.slot_of(own, position).has_value(), "a data block is in a stripe");
  }
  const std::uint64_t checksums = record.exposure ? 0 : layout.data_blocks(own);
  expect(bytes == record.data_bytes() && record.data_crcs.size() == checksums,
         "the data blocks are the files");
}

/// Every parity block has its checksum, and lies in the parity file.
void check_own_parity(const RankRecord& record, const SetLayout& layout) {
  const int own = record.index_in_set();
  if (layout.parity() == 0) return;
  expect(layout.rows() <= record.parity_crcs.size(), "rows without a checksum of their parity");
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < layout.parity_blocks(); ++i) {
    const std::uint64_t length = layout.parity_length(own, i);
    bytes += length;
    expect(length == 0 || layout.parity_offset(own, i) + length <= layout.parity_bytes(own),
           "a parity block lies in the parity file");
  }
  expect(bytes == layout.parity_bytes(own), "the parity blocks are the parity file");
}

/// Where something lies, and what lies there, agree.
void check_stripes(const SetLayout& layout) {
  for (int position = 0; position < layout.members(); ++position) {
    for (int slot = 0; slot < layout.columns(); ++slot)
      expect(layout.slot_of(layout.contributor(position, slot), position) == slot,
             "a member knows its data slot");
    for (int i = 0; i < layout.parity(); ++i) {
      const int owner = layout.owner(position, i);
      expect(
          layout.parity_of(owner, position) == i && layout.position_of_parity(owner, i) == position,
          "a member knows its parity");
    }
  }
}

void check_layout(const RankRecord& record) {
  const SetLayout layout(record.encoding);
  check_own_data(record, layout);
  check_own_parity(record, layout);
  check_stripes(layout);
  for (int member = 0; member < layout.members(); ++member) {
    std::vector<bool> lost(static_cast<std::size_t>(layout.members()));
    lost[static_cast<std::size_t>(member)] = true;
    expect(survives(layout, lost) == (layout.parity() > 0), "parity survives one loss");
  }
}

void check_replicas(const RankRecord& record) {
  const int own = record.index_in_set();
  for (const int index : records_kept_by(record.encoding, own))
    expect(index >= 0 && index < static_cast<int>(record.encoding.members.size()) && index != own,
           "a rank keeps records of the others of its set");
}

Blob payload_of(const RankRecord& record) {
  const Blob sealed = encode(record);
  const Bytes payload = find_envelopes(sealed).front().payload;
  return Blob(payload.begin(), payload.end());
}

}  // namespace

void check(Bytes input) {
  const auto record = decode_rank_record(input, rank_record_version);
  if (!record) return;
  expect(std::ranges::equal(payload_of(*record), input), "what was decoded encodes to the same");
  expect(
      std::ranges::all_of(record->files, [](const FileEntry& f) { return is_safe_name(f.name); }),
      "no name leads outside");
  expect(std::ranges::all_of(record->files,
                             [](const FileEntry& f) {
                               return f.begin() <= f.size && f.length() <= f.size - f.begin();
                             }),
         "no part lies beyond the end of its file");
  check_layout(*record);
  check_replicas(*record);
}

std::vector<Blob> seeds() {
  std::vector<Blob> payloads;
  for (const RankRecord& record : one_of_each_scheme()) payloads.push_back(payload_of(record));
  payloads.push_back(payload_of(one_in_place()));
  payloads.push_back(payload_of(one_written()));
  return payloads;
}

}  // namespace cairn::fuzz
