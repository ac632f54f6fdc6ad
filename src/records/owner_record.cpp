#include "records/owner_record.hpp"

namespace cairn {

Blob encode(const OwnerRecord& record) {
  Encoder out;
  out.u64(record.epoch);
  put(out, record.run);
  out.text(record.job_id);
  out.text(record.user);
  out.text(record.host);
  out.u64(record.process);
  out.i64(record.started_us);
  out.i64(record.beat_us);
  return seal(RecordType::owner, owner_record_version, out.take());
}

Result<OwnerRecord> decode_owner_record(Bytes content) {
  CAIRN_ASSIGN(const Bytes payload, open_only(content, RecordType::owner, owner_record_version));
  Decoder in(payload);
  OwnerRecord record;
  record.epoch = in.u64();
  record.run = get_uuid(in);
  record.job_id = in.text();
  record.user = in.text();
  record.host = in.text();
  record.process = in.u64();
  record.started_us = in.i64();
  record.beat_us = in.i64();
  if (in.failed() || !in.at_end() || record.epoch == 0) return fail_as_senseless();
  return record;
}

Blob encode_current(const std::string& name) {
  Encoder out;
  out.text(name);
  return seal(RecordType::current, current_version, out.take());
}

Result<std::string> decode_current(Bytes content) {
  CAIRN_ASSIGN(const Bytes payload, open_only(content, RecordType::current, current_version));
  Decoder in(payload);
  std::string name = in.text();
  if (in.failed() || !in.at_end()) return fail_as_senseless();
  return name;
}

}  // namespace cairn
