// Records of released versions stay readable: the bytes in tests/golden/records never change, and a
// new version of a format adds a file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "records/app_settings_record.hpp"
#include "records/dataset_record.hpp"
#include "records/halt_record.hpp"
#include "records/last_run_record.hpp"
#include "records/owner_record.hpp"
#include "records/prefix_id.hpp"
#include "records/rank_record.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

/// The worked example of docs/format/rank-record.md.
RankRecord example() {
  RankRecord record;
  record.dataset = {{1'700'000'000'000'000, 0x0123456789abcdef}, 12, 6, 1, 8, "ckpt.6"};
  record.rank = 2;
  record.files = {{"ckpt.6/rank_2.dat",
                   1000,
                   0640,
                   1000,
                   100,
                   {1'700'000'000'123'456'789, 1'700'000'001'000'000'000}},
                  {"log", 0, 0600, 1000, 100, {-1, 0}}};
  record.encoding = {1, Scheme::xor_, 1, 1, 512, {0, 2, 4}, {"n0", "n1", "n2"}, {1100, 1000, 0}};
  record.data_crcs = {0x11111111, 0x22222222};
  record.parity_crcs = {0x33333333, 0x44444444};
  return record;
}

Blob golden(const std::string& name = "rank-record-v1.bin") {
  std::ifstream in(CAIRN_GOLDEN "/records/" + name, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  const Bytes bytes = std::as_bytes(std::span(content));
  return {bytes.begin(), bytes.end()};
}

TEST(ReleasedFormats, RankRecordVersion1IsRead) {
  const Blob content = golden();
  const auto found = find_envelopes(content);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].type, RecordType::rank);
  EXPECT_EQ(found[0].version, 1U);
  const auto record = decode_rank_record(found[0].payload, found[0].version);
  ASSERT_TRUE(record) << record.error().text;
  const RankRecord expected = example();
  EXPECT_EQ(record->dataset, expected.dataset);
  EXPECT_EQ(record->rank, expected.rank);
  ASSERT_EQ(record->files.size(), 2U);
  EXPECT_EQ(record->files[0].name, "ckpt.6/rank_2.dat");
  EXPECT_EQ(record->files[0].size, 1000U);
  EXPECT_EQ(record->files[0].mode, 0640U);
  EXPECT_EQ(record->files[0].times.modify_ns, 1'700'000'001'000'000'000);
  EXPECT_EQ(record->files[1].times.access_ns, -1);
  EXPECT_EQ(record->encoding.scheme, Scheme::xor_);
  EXPECT_EQ(record->encoding.members, expected.encoding.members);
  EXPECT_EQ(record->encoding.member_nodes, expected.encoding.member_nodes);
  EXPECT_EQ(record->encoding.member_bytes, expected.encoding.member_bytes);
  EXPECT_EQ(record->encoding.block_bytes, 512U);
  EXPECT_EQ(record->data_crcs, expected.data_crcs);
  EXPECT_EQ(record->parity_crcs, expected.parity_crcs);
}

/// A record of a dataset in place; the file "all" is shared with other ranks.
RankRecord example_in_place() {
  RankRecord record;
  record.dataset = {
      {1'700'000'000'000'000, 0x0123456789abcdef}, 12, 6, 1 | flag_in_place, 8, "ckpt.6"};
  record.rank = 2;
  record.files = {{"all", 4000, 0640, 1000, 100, {-1, 0}, FilePart{512, 512}},
                  {"rank_2", 100, 0640, 1000, 100, {-1, 0}}};
  record.encoding = {1, Scheme::single, 0, 1, 512, {2}, {"n1"}, {612}};
  record.data_crcs = {0x11111111, 0x22222222};
  return record;
}

TEST(ReleasedFormats, RankRecordInPlaceIsRead) {
  const Blob content = golden("rank-record-in-place-v1.bin");
  const auto found = find_envelopes(content);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].version, 1U);
  const auto record = decode_rank_record(found[0].payload, found[0].version);
  ASSERT_TRUE(record) << record.error().text;
  EXPECT_EQ(record->dataset, example_in_place().dataset);
  ASSERT_EQ(record->files.size(), 2U);
  EXPECT_EQ(record->files[0].size, 4000U);
  EXPECT_EQ(record->files[0].begin(), 512U);
  EXPECT_EQ(record->files[0].length(), 512U);
  EXPECT_EQ(record->files[1].begin(), 0U);
  EXPECT_EQ(record->files[1].length(), 100U);
  EXPECT_EQ(record->data_crcs, example_in_place().data_crcs);
}

/// Of a part that is written and not protected yet.
RankRecord example_written() {
  RankRecord record = example();
  record.encoding = {1, Scheme::single, 0, 1, 512, {2}, {"n1"}, {1000}};
  record.data_crcs.clear();
  record.parity_crcs.clear();
  record.exposure = Exposure{"0f2e5d1c-boot", 1'700'000'002'000'000};
  return record;
}

TEST(ReleasedFormats, RankRecordOfAWrittenPartIsRead) {
  const Blob content = golden("rank-record-written-v1.bin");
  const auto found = find_envelopes(content);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].version, 1U);
  const auto record = decode_rank_record(found[0].payload, found[0].version);
  ASSERT_TRUE(record) << record.error().text;
  EXPECT_EQ(record->dataset, example_written().dataset);
  EXPECT_EQ(record->exposure, example_written().exposure);
  EXPECT_EQ(record->encoding.members, std::vector<int>{2});
}

TEST(ReleasedFormats, ARecordOfWhatIsWrittenHasNoChecksums) {
  RankRecord record = example_written();
  record.data_crcs = {1, 2};
  const Blob sealed = encode(record);
  EXPECT_FALSE(decode_rank_record(find_envelopes(sealed)[0].payload, rank_record_version));
}

TEST(ReleasedFormats, ARecordOfWhatIsWrittenHasOneExposure) {
  const Blob sealed = encode(example_written());
  const Bytes payload = find_envelopes(sealed)[0].payload;
  constexpr std::size_t exposure_bytes = 4 + std::string_view("0f2e5d1c-boot").size() + 8;
  const std::size_t count_at = payload.size() - exposure_bytes - 8;
  Blob twice(payload.begin(), payload.end());
  twice[count_at] = std::byte{2};
  EXPECT_FALSE(decode_rank_record(twice, rank_record_version)) << "one is missing";
  const Bytes exposure = payload.last(exposure_bytes);
  twice.insert(twice.end(), exposure.begin(), exposure.end());
  EXPECT_FALSE(decode_rank_record(twice, rank_record_version)) << "one too many";
  EXPECT_FALSE(decode_rank_record(payload.first(count_at), rank_record_version));
}

TEST(ReleasedFormats, RankRecordsAreWrittenByteForByte) {
  ASSERT_EQ(rank_record_version, 1U)
      << "a new version: give it a golden file and a test of its own";
  EXPECT_EQ(encode(example()), golden());
  EXPECT_EQ(encode(example_written()), golden("rank-record-written-v1.bin"));
  EXPECT_EQ(encode(example_in_place()), golden("rank-record-in-place-v1.bin"));
}

/// The bytes of the lines "OFFSET  xx xx ...  meaning" in the first block after the heading.
Blob example_of(const std::string& document, const std::string& heading = "## Example") {
  std::ifstream in(document);
  std::string line;
  while (std::getline(in, line) && line != heading) continue;
  while (std::getline(in, line) && line != "```") continue;
  Blob bytes;
  while (std::getline(in, line) && line != "```") {
    EXPECT_EQ(std::stoul(line.substr(0, 4), nullptr, 16), bytes.size()) << line;
    for (std::size_t at = 6; at < 6 + 3 * 16 && at < line.size() && line[at] != ' '; at += 3)
      bytes.push_back(static_cast<std::byte>(std::stoul(line.substr(at, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(ReleasedFormats, TheWorkedExampleIsTheGoldenFile) {
  EXPECT_EQ(example_of(CAIRN_FORMAT_DOCS "/rank-record.md"), golden());
  EXPECT_EQ(example_of(CAIRN_FORMAT_DOCS "/rank-record.md", "## Example in place"),
            golden("rank-record-in-place-v1.bin"));
}

/// The worked example of docs/format/halt.md.
HaltRecord halt_example() { return {3, 1'800'000'000, 1'700'000'000, 600, "JOB_HALTED", true}; }

TEST(ReleasedFormats, HaltRecordVersion1IsRead) {
  const auto record = decode_halt_record(golden("halt-record-v1.bin"));
  ASSERT_TRUE(record) << record.error().text;
  EXPECT_EQ(*record, halt_example());
}

TEST(ReleasedFormats, HaltRecordVersion1IsWrittenByteForByte) {
  ASSERT_EQ(halt_record_version, 1U)
      << "a new version: give it a golden file and a test of its own";
  EXPECT_EQ(encode(halt_example()), golden("halt-record-v1.bin"));
  EXPECT_EQ(example_of(CAIRN_FORMAT_DOCS "/halt.md"), golden("halt-record-v1.bin"));
}

/// The worked example of docs/format/dataset-record.md.
DatasetRecord dataset_example() {
  DatasetRecord record;
  record.info = {{1'700'000'000'000'000, 0x0123456789abcdef}, 12, 6, 1, 8, "ckpt.6"};
  record.job_id = "4711";
  record.files = 16;
  record.bytes = 8000;
  record.ranks_per_manifest = 64;
  record.settled = true;
  record.flushed_us = 1'700'000'002'000'000;
  record.fetched_us = 1'700'000'003'000'000;
  record.failed_us = 1'700'000'004'000'000;
  record.failure = "bad";
  record.attempts = 3;
  record.quarantined = true;
  return record;
}

/// The example of docs/format/listing.md: that record, and one with few fields.
std::vector<DatasetRecord> listing_example() {
  DatasetRecord older;
  older.info = {{1'600'000'000'000'000, 1}, 11, 0, 2, 1, "ckpt.5"};
  return {dataset_example(), older};
}

OwnerRecord owner_example() {
  return {3,
          {1'700'000'000'000'000, 0x0123456789abcdef},
          "4711",
          "ada",
          "n0",
          77,
          1'700'000'000'000'000,
          1'700'000'060'000'000};
}

std::vector<Entry> app_settings_example() {
  return {{"SCR_FLUSH", "2", {}, 0}, {"CKPT", "0", {{"TYPE", "XOR"}}, 0}};
}

LastRunRecord last_run_example() {
  return {"4711",
          "ada",
          "0.1.0",
          true,
          "/pfs/job",
          {{"n0", "n0.x", 2}, {"n1", "n1.x", 1}},
          "/ssd/%n",
          "/tmp",
          {{"/ssd/%n", false}, {"/pfs", true}},
          "n0.x",
          {"b1 pid:[4]", 77, 1234},
          1'700'000'000'000'000,
          1'700'000'060'000'000};
}

PrefixIdRecord prefix_id_example() { return {PrefixId{0x0123456789abcdef}, "/pfs/run", 1234}; }

TEST(ReleasedFormats, RecordsOfThePrefixDirectoryVersion1AreRead) {
  const auto dataset = decode_dataset_record(golden("dataset-record-v1.bin"));
  ASSERT_TRUE(dataset) << dataset.error().text;
  EXPECT_EQ(*dataset, dataset_example());
  const auto listing = decode_listing(golden("listing-v1.bin"));
  ASSERT_TRUE(listing) << listing.error().text;
  EXPECT_EQ(*listing, listing_example());
  const auto owner = decode_owner_record(golden("owner-record-v1.bin"));
  ASSERT_TRUE(owner) << owner.error().text;
  EXPECT_EQ(*owner, owner_example());
  EXPECT_EQ(decode_current(golden("current-record-v1.bin")), "ckpt.6");
  const auto last_run = decode_last_run_record(golden("last-run-record-v1.bin"));
  ASSERT_TRUE(last_run) << last_run.error().text;
  EXPECT_EQ(*last_run, last_run_example());
  EXPECT_EQ(decode_prefix_id_record(golden("prefix-id-record-v1.bin")), prefix_id_example());
  const auto set = decode_app_settings(golden("app-settings-record-v1.bin"));
  ASSERT_TRUE(set) << set.error().text;
  ASSERT_EQ(set->size(), 2U);
  EXPECT_EQ(set->at(0).key + "=" + set->at(0).value, "SCR_FLUSH=2");
  EXPECT_EQ(set->at(1).key + "=" + set->at(1).value, "CKPT=0");
  ASSERT_EQ(set->at(1).children.size(), 1U);
  EXPECT_EQ(set->at(1).children[0].key + "=" + set->at(1).children[0].value, "TYPE=XOR");
}

/// What is written now is the golden file of its version, and the worked example of its document.
TEST(ReleasedFormats, RecordsOfThePrefixDirectoryAreWrittenByteForByte) {
  struct Written {
    std::string name;
    std::uint32_t version = 0;
    Blob sealed;
  };
  for (const Written& written :
       std::vector<Written>{{"dataset-record", dataset_record_version, encode(dataset_example())},
                            {"listing", listing_version, encode(listing_example())},
                            {"owner-record", owner_record_version, encode(owner_example())},
                            {"prefix-id-record", prefix_id_version, encode(prefix_id_example())},
                            {"current-record", current_version, encode_current("ckpt.6")},
                            {"app-settings-record", app_settings_version,
                             encode_app_settings(app_settings_example())},
                            {"last-run-record", last_run_version, encode(last_run_example())}}) {
    const std::string file = fmt::format("{}-v{}.bin", written.name, written.version);
    const Blob expected = golden(file);
    EXPECT_FALSE(expected.empty())
        << "a new version needs the golden file " << file << ", and a test that reads the older";
    EXPECT_EQ(written.sealed, expected) << file;
    EXPECT_EQ(example_of(CAIRN_FORMAT_DOCS "/" + written.name + ".md"), expected) << file;
  }
}

}  // namespace
}  // namespace cairn
