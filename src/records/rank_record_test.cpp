#include "records/rank_record.hpp"

#include <gtest/gtest.h>

#include <random>

#include "base/checksum.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

RankRecord example() {
  RankRecord record;
  record.dataset = {{1'700'000'000'000'000, 2}, 5, 5, 1, 8, "ckpt.5"};
  record.rank = 3;
  record.files = {{"a/state", 1000, 0644, 1, 2, {3, 4}}, {"b/state", 77, 0600, 1, 2, {5, 6}}};
  record.encoding = {1, Scheme::xor_, 1, 1, 256, {1, 3, 5}, {"n0", "n1", "n2"}, {900, 1077, 0}};
  const SetLayout layout(record.encoding);
  record.data_crcs.resize(layout.data_blocks(1), 7);
  record.parity_crcs.resize(layout.parity_blocks(), 9);
  return record;
}

/// Of a dataset in place, with a file that others have written to as well.
RankRecord shared_example() {
  RankRecord record = example();
  record.dataset.flags |= flag_in_place;
  record.files[0].size = 5000;
  record.files[0].part = FilePart{1024, 1000};
  return record;
}

Result<RankRecord> decode(const Blob& sealed) {
  const auto found = find_envelopes(sealed);
  if (found.size() != 1) return fail(Code::corrupt, "no envelope");
  return decode_rank_record(found[0].payload, found[0].version);
}

TEST(RankRecord, ComesBackWhole) {
  const RankRecord record = example();
  const auto back = decode(encode(record));
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_EQ(back->dataset, record.dataset);
  EXPECT_EQ(back->rank, 3);
  EXPECT_EQ(back->index_in_set(), 1);
  EXPECT_EQ(back->data_bytes(), 1077U);
  EXPECT_EQ(back->files[1].name, "b/state");
  EXPECT_EQ(back->files[0].times.modify_ns, 4);
  EXPECT_EQ(back->encoding.member_nodes, record.encoding.member_nodes);
  EXPECT_EQ(back->encoding.member_bytes, record.encoding.member_bytes);
  EXPECT_EQ(back->encoding.block_bytes, 256U);
  EXPECT_EQ(back->data_crcs, record.data_crcs);
  EXPECT_EQ(encode(*back), encode(record));
}

TEST(RankRecord, PartsOfSharedFilesComeBack) {
  const RankRecord record = shared_example();
  const auto back = decode(encode(record));
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_EQ(back->files[0].size, 5000U);
  EXPECT_EQ(back->files[0].begin(), 1024U);
  EXPECT_EQ(back->files[0].length(), 1000U);
  EXPECT_FALSE(back->files[1].part) << "its own";
  EXPECT_EQ(back->files[1].length(), 77U);
  EXPECT_EQ(back->data_bytes(), 1077U);
  EXPECT_EQ(encode(*back), encode(record));
}

TEST(RankRecord, PartsBeyondTheEndOfTheFileAreRefused) {
  const auto refused = [](FilePart part) {
    RankRecord record = shared_example();
    record.files[0].part = part;
    return !decode(encode(record));
  };
  EXPECT_FALSE(refused({4000, 1000}));
  EXPECT_TRUE(refused({4001, 1000}));
  EXPECT_TRUE(refused({5001, 0}));
  EXPECT_TRUE(refused({~std::uint64_t{0}, 1000}));
  EXPECT_TRUE(refused({0, 999})) << "its set says 1077 bytes in all";
}

TEST(Uuid, ReadsWhatItWritesAndSortsByTime) {
  const Uuid early{5, 9};
  const Uuid late{6, 1};
  EXPECT_LT(early, late);
  EXPECT_LT(text_of(early), text_of(late));
  EXPECT_EQ(parse_uuid(text_of(late)), late);
  for (const char* text :
       {"", "5", "000000000000000500000000000000g9", "+00000000000000500000000000000009"})
    EXPECT_FALSE(parse_uuid(text)) << text;
}

TEST(RankRecord, ANewerFormatIsRefusedByName) {
  const auto refused = decode_rank_record({}, rank_record_version + 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::newer_format);
  EXPECT_NE(refused.error().text.find("newer Cairn"), std::string::npos);
}

TEST(RankRecord, AVersionThatNeverWasIsRefused) {
  const Blob sealed = encode(example());
  const Bytes payload = find_envelopes(sealed)[0].payload;
  EXPECT_TRUE(decode_rank_record(payload, 1));
  EXPECT_FALSE(decode_rank_record(payload, 0));
}

TEST(RankRecord, APartOfAFileIsRefusedWhereTheDatasetIsNotInPlace) {
  RankRecord record = shared_example();
  EXPECT_TRUE(decode(encode(record)));
  record.dataset.flags &= ~flag_in_place;
  EXPECT_FALSE(decode(encode(record)));
}

TEST(RankRecord, NamesOfCairnsOwnFilesAreRefused) {
  for (const char* name : {".cairn", ".cairn/owner", "a/.cairn/b", ".cairn.x", "a/.cairn.x"}) {
    EXPECT_TRUE(is_own_name(name)) << name;
    RankRecord record = example();
    record.files[0].name = name;
    EXPECT_FALSE(decode(encode(record))) << name;
  }
  for (const char* name : {".cairns", "x.cairn", "a/.cairn", "a.cairn.b", ".cairn.x/a"})
    EXPECT_FALSE(is_own_name(name));
}

TEST(RankRecord, NamesThatLeadOutsideAreRefused) {
  for (const char* name : {"", "/etc/passwd", "..", "../x", "a/../b", "a//b", "./a", "a/", "a/."}) {
    EXPECT_FALSE(is_safe_name(name)) << name;
    RankRecord record = example();
    record.files[0].name = name;
    EXPECT_FALSE(decode(encode(record))) << name;
  }
  EXPECT_FALSE(is_safe_name(std::string("a\0b", 3)));
  EXPECT_FALSE(is_safe_name(std::string(2000, 'a')));
  EXPECT_TRUE(is_safe_name("ckpt.1/rank..2"));
}

TEST(RankRecord, WhatDoesNotFitTogetherIsRefused) {
  const auto refused = [](auto change) {
    RankRecord record = example();
    change(record);
    return !decode(encode(record));
  };
  EXPECT_TRUE(refused([](RankRecord& r) { r.data_crcs.pop_back(); }));
  EXPECT_TRUE(refused([](RankRecord& r) { r.parity_crcs.push_back(1); }));
  EXPECT_TRUE(refused([](RankRecord& r) { r.encoding.members = {1, 1, 3}; }));
  EXPECT_TRUE(refused([](RankRecord& r) { r.encoding.members = {1, 2, 5}; }));
  EXPECT_TRUE(refused([](RankRecord& r) { r.encoding.members[0] = 8; }));
  EXPECT_TRUE(refused([](RankRecord& r) { r.encoding.failures = 3; }));
  EXPECT_TRUE(refused([](RankRecord& r) { r.encoding.block_bytes = 0; }));
  EXPECT_TRUE(refused([](RankRecord& r) { r.encoding.hop = 0x7fffffff; })) << "not PARTNER";
  EXPECT_TRUE(refused([](RankRecord& r) { r.encoding.member_bytes[1] += 1; }));
  EXPECT_TRUE(refused([](RankRecord& r) { r.files[1].name = r.files[0].name; }));
  EXPECT_TRUE(refused([](RankRecord& r) { r.files[1].size = ~std::uint64_t{0}; }));
}

TEST(RankRecord, MoreParityBlocksThanCanBeCountedAreRefused) {
  RankRecord record = example();
  const std::uint64_t rows = std::uint64_t{1} << 60;
  record.rank = 0;
  record.files.clear();
  record.data_crcs.clear();
  record.parity_crcs.clear();
  record.dataset.ranks = 17;
  record.encoding = {1, Scheme::rs, 16, 1, 1, {}, std::vector<std::string>(17, "n"), {}};
  for (int rank = 0; rank < 17; ++rank) record.encoding.members.push_back(rank);
  record.encoding.member_bytes.resize(17);
  record.encoding.member_bytes[1] = rows;
  ASSERT_EQ(SetLayout(record.encoding).parity_blocks(), 0U) << "16 * 2^60 is 2^64";
  EXPECT_FALSE(decode(encode(record)));
}

TEST(RankRecord, RandomPayloadsNeverCrashTheDecoder) {
  std::mt19937 random(1);
  const Blob sealed = encode(example());
  const Bytes payload = find_envelopes(sealed)[0].payload;
  for (int round = 0; round < 20'000; ++round) {
    Blob bytes(payload.begin(), payload.end());
    for (int i = 0; i < 1 + round % 4; ++i)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(bytes.size() - random() % 3);
    if (const auto record = decode_rank_record(bytes, rank_record_version)) {
      for (const FileEntry& file : record->files) ASSERT_TRUE(is_safe_name(file.name));
    }
  }
}

}  // namespace
}  // namespace cairn
