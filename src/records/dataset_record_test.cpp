// The records of the prefix directory: datasets, their listing, the owner, the current name.
#include "records/dataset_record.hpp"

#include <gtest/gtest.h>

#include <random>

#include "records/owner_record.hpp"

namespace cairn {
namespace {

DatasetRecord example(std::uint64_t number) {
  DatasetRecord record;
  record.info = {{1'700'000'000'000'000, 2},      number, number, 3, 8,
                 "ckpt." + std::to_string(number)};
  record.job_id = "1234";
  record.files = 16;
  record.bytes = 1 << 30;
  record.ranks_per_manifest = 64;
  record.settled = true;
  record.flushed_us = 5;
  record.fetched_us = 6;
  record.failed_us = 7;
  record.failure = "a block does not match its checksum";
  record.attempts = 2;
  record.quarantined = true;
  return record;
}

OwnerRecord owner() { return {3, {5, 6}, "1234", "ada", "n0", 77, 8, 9}; }

TEST(DatasetRecord, ComesBackWhole) {
  const auto back = decode_dataset_record(encode(example(5)));
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_EQ(*back, example(5));
}

TEST(DatasetRecord, AReplacedDatasetComesBackAloneAndInAListing) {
  DatasetRecord replaced = example(5);
  replaced.replaced_by = "dataset 6 (ckpt.6)";
  EXPECT_EQ(decode_dataset_record(encode(replaced)), replaced);
  const std::vector<DatasetRecord> listing = {example(6), replaced, example(4)};
  EXPECT_EQ(decode_listing(encode(listing)), listing);
}

TEST(DatasetRecord, AListingComesBackInItsOrder) {
  const std::vector<DatasetRecord> listing = {example(9), example(5), example(7)};
  EXPECT_EQ(decode_listing(encode(listing)), listing);
  EXPECT_EQ(decode_listing(encode(std::vector<DatasetRecord>{})), std::vector<DatasetRecord>{});
}

TEST(DatasetRecord, AListingOfTheSmallestRecordsComesBack) {
  DatasetRecord smallest;
  smallest.info.ranks = 1;
  const std::vector<DatasetRecord> listing(3, smallest);
  EXPECT_EQ(decode_listing(encode(listing)), listing);
}

TEST(DatasetRecord, OwnerAndCurrentComeBackWhole) {
  EXPECT_EQ(decode_owner_record(encode(owner())), owner());
  EXPECT_EQ(decode_current(encode_current("a/ckpt 5")), "a/ckpt 5");
}

TEST(DatasetRecord, OneTypeIsNotReadAsAnother) {
  EXPECT_FALSE(decode_listing(encode(example(5))));
  EXPECT_FALSE(decode_dataset_record(encode(owner())));
  EXPECT_FALSE(decode_current(encode(owner())));
  EXPECT_FALSE(decode_owner_record(encode_current("x")));
}

TEST(DatasetRecord, ContradictoryFieldsAreCorrupt) {
  DatasetRecord record = example(5);
  record.ranks_per_manifest = 0;
  EXPECT_FALSE(decode_dataset_record(encode(record)));
  EXPECT_FALSE(decode_listing(encode(std::vector{record})));
  record = example(5);
  record.info.ranks = 0;
  EXPECT_FALSE(decode_dataset_record(encode(record)));
  const Blob sealed = encode(example(5));
  const Bytes payload = find_envelopes(sealed)[0].payload;
  Blob neither(payload.begin(), payload.end());
  neither[neither.size() - 8] = std::byte{2};  // quarantined
  EXPECT_FALSE(decode_dataset_record(seal(RecordType::dataset, dataset_record_version, neither)));
  OwnerRecord no_owner = owner();
  no_owner.epoch = 0;
  EXPECT_FALSE(decode_owner_record(encode(no_owner)));
}

TEST(DatasetRecord, ADatasetInPlaceComesBackAloneAndInAListing) {
  DatasetRecord record = example(5);
  record.info.flags |= flag_in_place;
  EXPECT_EQ(*decode_dataset_record(encode(record)), record);
  const std::vector<DatasetRecord> listing = {record, example(4)};
  EXPECT_EQ(*decode_listing(encode(listing)), listing);
}

TEST(DatasetRecord, ALaterVersionIsNewerFormat) {
  const auto refused =
      decode_dataset_record(seal(RecordType::dataset, dataset_record_version + 1, {}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::newer_format);
}

/// Every one-byte change and every truncation is detected by the checksum.
TEST(DatasetRecord, ADamagedFileIsCorrupt) {
  const Blob whole = encode(example(5));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Blob damaged = whole;
    damaged[at] ^= std::byte{0x10};
    ASSERT_FALSE(decode_dataset_record(damaged)) << at;
    ASSERT_FALSE(decode_dataset_record(Bytes(whole).first(at))) << at;
  }
  Blob longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_dataset_record(longer));
}

TEST(DatasetRecord, RandomPayloadsNeverCrashTheDecoders) {
  std::mt19937 random(1);
  const Blob sealed = encode(std::vector<DatasetRecord>{example(1), example(2)});
  for (int round = 0; round < 20'000; ++round) {
    const Bytes payload = find_envelopes(sealed)[0].payload;
    Blob bytes(payload.begin(), payload.end());
    for (int i = 0; i < 1 + round % 4; ++i)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    for (const RecordType type : {RecordType::dataset, RecordType::index, RecordType::owner})
      if (const auto listing = decode_listing(seal(type, listing_version, bytes))) {
        for (const DatasetRecord& record : *listing) ASSERT_GT(record.info.ranks, 0U);
      }
    (void)decode_dataset_record(seal(RecordType::dataset, dataset_record_version, bytes));
    (void)decode_owner_record(seal(RecordType::owner, owner_record_version, bytes));
  }
}

}  // namespace
}  // namespace cairn
