#include "records/dataset_record.hpp"

#include <fmt/format.h>

#include <optional>

namespace cairn {
namespace {

void put(Encoder& out, const DatasetRecord& record) {
  put(out, record.info);
  out.text(record.job_id);
  out.u64(record.files);
  out.u64(record.bytes);
  out.u32(record.ranks_per_manifest);
  out.u32(record.settled ? 1 : 0);
  out.i64(record.flushed_us);
  out.i64(record.fetched_us);
  out.i64(record.failed_us);
  out.text(record.failure);
  out.u32(record.attempts);
  out.u32(record.quarantined ? 1 : 0);
  out.text(record.replaced_by);
}

/// Nothing if the fields contradict each other.
std::optional<DatasetRecord> get_record(Decoder& in) {
  DatasetRecord record;
  record.info = get_dataset(in);
  record.job_id = in.text();
  record.files = in.u64();
  record.bytes = in.u64();
  record.ranks_per_manifest = in.u32();
  record.settled = in.boolean();
  record.flushed_us = in.i64();
  record.fetched_us = in.i64();
  record.failed_us = in.i64();
  record.failure = in.text();
  record.attempts = in.u32();
  record.quarantined = in.boolean();
  record.replaced_by = in.text();
  if (in.failed() || record.info.ranks == 0 || record.ranks_per_manifest == 0) return std::nullopt;
  if (record.info.was_found() && !record.info.in_place()) return std::nullopt;
  return record;
}

}  // namespace

std::string DatasetRecord::label() const {
  return fmt::format("dataset {} ({})", info.number, info.name);
}

/// Quarantine has precedence over the state of the files: a user has set it, or failed restarts
/// have.
PrefixState state_of(const DatasetRecord& record) {
  return record.quarantined ? PrefixState::quarantined : state_of_files(record);
}

PrefixState state_of_files(const DatasetRecord& record) {
  if (!record.replaced_by.empty()) return PrefixState::replaced;
  if (record.failed_us != 0) return PrefixState::failed;
  return record.settled ? PrefixState::settled : PrefixState::published;
}

Blob encode(const DatasetRecord& record) {
  Encoder out;
  put(out, record);
  return seal(RecordType::dataset, dataset_record_version, out.take());
}

Result<DatasetRecord> decode_dataset_record(Bytes content) {
  CAIRN_ASSIGN(const Bytes payload,
               open_only(content, RecordType::dataset, dataset_record_version));
  Decoder in(payload);
  auto record = get_record(in);
  if (!record || !in.at_end()) return fail_as_senseless();
  return *std::move(record);
}

Blob encode(const std::vector<DatasetRecord>& listing) {
  constexpr std::size_t usual_record_bytes = 160;
  Encoder out;
  out.reserve(listing.size() * usual_record_bytes);
  out.u64(listing.size());
  for (const DatasetRecord& record : listing) put(out, record);
  return seal(RecordType::index, listing_version, out.take());
}

Result<std::vector<DatasetRecord>> decode_listing(Bytes content) {
  constexpr std::size_t smallest_record_bytes = 112;
  CAIRN_ASSIGN(const Bytes payload, open_only(content, RecordType::index, listing_version));
  Decoder in(payload);
  std::vector<DatasetRecord> listing;
  const std::uint64_t count = in.count(smallest_record_bytes);
  listing.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    auto record = get_record(in);
    if (!record) return fail_as_senseless();
    listing.push_back(*std::move(record));
  }
  if (in.failed() || !in.at_end()) return fail_as_senseless();
  return listing;
}

}  // namespace cairn
