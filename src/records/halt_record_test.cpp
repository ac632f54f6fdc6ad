#include "records/halt_record.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "base/local_time.hpp"
#include "records/wire.hpp"

namespace cairn {
namespace {

HaltRecord full() {
  HaltRecord record;
  record.checkpoints_left = 3;
  record.exit_before_s = 1'800'000'000;
  record.exit_after_s = 1'700'000'000;
  record.halt_seconds = 600;
  record.reason = halt_reason::job_halted;
  record.immediate = true;
  return record;
}

/// A sealed record of version 1, valid or not.
Blob payload_of(const HaltRecord& record) {
  const Blob sealed = encode(record);
  const Bytes payload = find_envelopes(sealed)[0].payload;
  return {payload.begin(), payload.end()};
}

TEST(HaltRecord, ComesBackWhole) {
  std::vector<HaltRecord> records = {HaltRecord{}, full()};
  for (const auto member : {&HaltRecord::checkpoints_left, &HaltRecord::exit_before_s,
                            &HaltRecord::exit_after_s, &HaltRecord::halt_seconds}) {
    HaltRecord zero;
    zero.*member = 0;
    HaltRecord without = full();
    without.*member = std::nullopt;
    records.insert(records.end(), {zero, without});
  }
  for (const HaltRecord& record : records) {
    const auto back = decode_halt_record(encode(record));
    ASSERT_TRUE(back) << back.error().text;
    EXPECT_EQ(*back, record);
  }
}

TEST(HaltRecord, OtherVersionsAreErrors) {
  const Blob payload = payload_of(full());
  EXPECT_TRUE(decode_halt_record(seal(RecordType::halt, 1, payload)));
  EXPECT_EQ(decode_halt_record(seal(RecordType::halt, 0, payload)).error().code, Code::corrupt);
  EXPECT_EQ(decode_halt_record(seal(RecordType::halt, 2, payload)).error().code,
            Code::newer_format);
  EXPECT_FALSE(decode_halt_record(seal(RecordType::owner, 1, payload))) << "another record";
}

TEST(HaltRecord, ContradictoryFieldsAreCorrupt) {
  const auto refuses = [](const std::function<void(HaltRecord&)>& spoil) {
    HaltRecord record = full();
    spoil(record);
    const auto back = decode_halt_record(encode(record));
    return !back && back.error().code == Code::corrupt;
  };
  EXPECT_TRUE(refuses([](HaltRecord& r) { r.checkpoints_left = -1; }));
  EXPECT_TRUE(refuses([](HaltRecord& r) { r.checkpoints_left = largest_halt_count + 1; }));
  EXPECT_TRUE(refuses([](HaltRecord& r) { r.exit_before_s = latest_time_s + 1; }));
  EXPECT_TRUE(refuses([](HaltRecord& r) { r.exit_after_s = -5; }));
  EXPECT_TRUE(refuses([](HaltRecord& r) { r.halt_seconds = largest_halt_count + 1; }));
  EXPECT_TRUE(refuses([](HaltRecord& r) { r.reason = "two\nlines"; }));
  EXPECT_TRUE(refuses([](HaltRecord& r) { r.reason = std::string(256, 'x'); }));
  EXPECT_TRUE(refuses([](HaltRecord& r) { r.reason = ""; })) << "at once, but for no reason";
  EXPECT_TRUE(refuses([](HaltRecord& r) { r.reason = halt_reason::time_limit; }));
}

TEST(HaltRecord, AbsentFieldsAreZeroAndFlagsAreKnown) {
  Blob payload = payload_of(HaltRecord{});
  payload[4] = std::byte{1};  // a count without its flag
  EXPECT_FALSE(decode_halt_record(seal(RecordType::halt, 1, payload)));
  payload = payload_of(HaltRecord{});
  payload[0] = std::byte{32};
  EXPECT_FALSE(decode_halt_record(seal(RecordType::halt, 1, payload)));
}

TEST(HaltRecord, AnyBytesGiveAValueOrAnError) {
  const Blob whole = payload_of(full());
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(decode_halt_record(seal(RecordType::halt, 1, Bytes(whole).first(bytes)))) << bytes;
  Blob longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_halt_record(seal(RecordType::halt, 1, longer)));
  std::minstd_rand random(5);
  for (int i = 0; i < 20'000; ++i) {
    Blob payload = whole;
    for (int changes = 0; changes < 3; ++changes)
      payload[random() % payload.size()] = static_cast<std::byte>(random());
    const auto back = decode_halt_record(seal(RecordType::halt, 1, payload));
    if (back) {
      EXPECT_EQ(payload_of(*back), payload);
    }
  }
}

TEST(HaltReason, ReasonsOfTheLibraryStopNothing) {
  using namespace halt_reason;
  for (const auto reason : {time_limit, no_checkpoints_left, exit_before_time, exit_after_time}) {
    EXPECT_TRUE(is_condition(reason)) << reason;
    EXPECT_FALSE(is_request(reason)) << reason;
  }
  EXPECT_FALSE(is_request(finalize_called) || is_condition(finalize_called));
  EXPECT_FALSE(is_request("") || is_condition(""));
  EXPECT_TRUE(is_request(job_halted) && is_request("MAINTENANCE"));
  EXPECT_FALSE(is_condition(job_halted));
}

}  // namespace
}  // namespace cairn
