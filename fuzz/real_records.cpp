#include "real_records.hpp"

namespace cairn::fuzz {
namespace {

constexpr std::uint32_t block_bytes = 512;

std::uint64_t data_bytes_of(int rank) { return 700 * static_cast<std::uint64_t>(rank); }

Encoding encoding_of(const CheckpointSettings& settings, int members) {
  std::vector<int> ranks;
  for (int rank = 0; rank < members; ++rank) ranks.push_back(rank);
  Encoding encoding = make_encoding(settings, ranks, block_bytes);
  for (const int rank : encoding.members) {
    encoding.member_nodes.push_back("n" + std::to_string(rank));
    encoding.member_bytes.push_back(data_bytes_of(rank));
  }
  return encoding;
}

RankRecord record_of(int rank, const Encoding& encoding) {
  RankRecord record;
  record.dataset = {{1'700'000'000'000'000, 5}, 3, 3, 1, 9, "ckpt.3"};
  record.rank = rank;
  record.files = {{"log", 0, 0600, 1, 1, {-1, 0}},
                  {"ckpt.3/state", data_bytes_of(rank), 0640, 1000, 100, {1, 2}}};
  record.encoding = encoding;
  const SetLayout layout(encoding);
  record.data_crcs.assign(layout.data_blocks(rank), 0x11111111);
  record.parity_crcs.assign(layout.parity_blocks(), 0x22222222);
  return record;
}

}  // namespace

std::vector<RankRecord> records_of_set(const CheckpointSettings& settings, int members) {
  const Encoding encoding = encoding_of(settings, members);
  std::vector<RankRecord> records;
  for (const int rank : encoding.members) records.push_back(record_of(rank, encoding));
  return records;
}

std::vector<RankRecord> one_of_each_scheme() {
  std::vector<RankRecord> records;
  for (const Scheme scheme : {Scheme::single, Scheme::partner, Scheme::xor_, Scheme::rs}) {
    CheckpointSettings settings;
    settings.scheme = scheme;
    records.push_back(records_of_set(settings, 2 + static_cast<int>(scheme)).back());
    settings.partner_copies = 2;
    settings.partner_hop = 2;
    records.push_back(records_of_set(settings, 5).back());
  }
  return records;
}

RankRecord one_in_place() {
  CheckpointSettings settings;
  settings.scheme = Scheme::single;
  RankRecord record = record_of(0, encoding_of(settings, 1));
  record.dataset.flags |= flag_in_place;
  record.files[1].size = 4000;
  record.files[1].part = FilePart{1024, 700};
  record.encoding.member_bytes = {record.data_bytes()};
  record.data_crcs.assign(SetLayout(record.encoding).data_blocks(0), 0x11111111);
  return record;
}

RankRecord one_written() {
  CheckpointSettings settings;
  settings.scheme = Scheme::single;
  RankRecord record = record_of(0, encoding_of(settings, 1));
  record.data_crcs.clear();
  record.exposure = Exposure{"boot", 1'700'000'000'000'000};
  return record;
}

}  // namespace cairn::fuzz
