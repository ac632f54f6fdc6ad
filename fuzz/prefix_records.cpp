// The records of the prefix directory, each given as the payload of an intact envelope.
#include <algorithm>

#include "decoder.hpp"
#include "records/app_settings_record.hpp"
#include "records/dataset_record.hpp"
#include "records/halt_record.hpp"
#include "records/last_run_record.hpp"
#include "records/owner_record.hpp"
#include "records/prefix_id.hpp"

namespace cairn::fuzz {
namespace {

template <class Decode, class Encode>
void check_one(RecordType type, std::uint32_t version, Bytes payload, Decode decode,
               Encode encode_again) {
  const Blob sealed = seal(type, version, payload);
  const auto record = decode(sealed);
  if (record) expect(encode_again(*record) == sealed, "what was decoded encodes to the same");
}

Blob payload_of(const Blob& sealed) {
  const Bytes payload = find_envelopes(sealed).front().payload;
  return Blob(payload.begin(), payload.end());
}

}  // namespace

void check(Bytes input) {
  const auto again = [](const auto& record) { return encode(record); };
  check_one(RecordType::dataset, dataset_record_version, input, decode_dataset_record, again);
  check_one(RecordType::index, listing_version, input, decode_listing, again);
  check_one(RecordType::owner, owner_record_version, input, decode_owner_record, again);
  check_one(RecordType::current, current_version, input, decode_current, encode_current);
  check_one(RecordType::app_settings, app_settings_version, input, decode_app_settings,
            encode_app_settings);
  check_one(RecordType::last_run, last_run_version, input, decode_last_run_record, again);
  check_one(RecordType::prefix_id, prefix_id_version, input, decode_prefix_id_record, again);
  check_one(RecordType::halt, halt_record_version, input, decode_halt_record, again);
  for (const auto& decoded :
       {decode_dataset_record(input).has_value(), decode_listing(input).has_value()})
    expect(!decoded || input.size() > 32, "a file without an envelope holds no record");
}

std::vector<Blob> seeds() {
  DatasetRecord record;
  record.info = {{1'700'000'000'000'000, 2}, 5, 4, 3, 8, "ckpt.5"};
  record.job_id = "1234";
  record.ranks_per_manifest = 64;
  record.failure = "why";
  DatasetRecord in_place = record;
  in_place.info.flags |= flag_in_place;
  const OwnerRecord owner{3, {5, 6}, "1234", "ada", "n0", 77, 8, 9};
  HaltRecord halt{3, 1'800'000'000, 1'700'000'000, 600, "JOB_HALTED", true};
  const std::vector<Entry> set = {{"SCR_FLUSH", "2", {}, 0},
                                  {"CKPT", "0", {{"TYPE", "XOR"}, {"SET_SIZE", "4"}}, 0}};
  const LastRunRecord run{"1234",
                          "ada",
                          "0.1.0",
                          true,
                          "/pfs/ada",
                          {{"n0", "host", 2}, {"n1", "host", 2}},
                          "/dev/shm/%n",
                          "/tmp",
                          {{"/dev/shm/%n", false}, {"/scratch", true}},
                          "host",
                          {"boot pid:[1]", 77, 78},
                          8,
                          9};
  return {payload_of(encode(halt)),
          payload_of(encode(HaltRecord{})),
          payload_of(encode(record)),
          payload_of(encode(std::vector{record, record})),
          payload_of(encode(in_place)),
          payload_of(encode(std::vector{in_place, record})),
          payload_of(encode(owner)),
          payload_of(encode_current("ckpt.5")),
          payload_of(encode(PrefixIdRecord{PrefixId{0x0123456789abcdef}, "/pfs/ada", 1234})),
          payload_of(encode_app_settings(set)),
          payload_of(encode(run))};
}

}  // namespace cairn::fuzz
