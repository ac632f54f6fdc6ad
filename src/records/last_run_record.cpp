#include "records/last_run_record.hpp"

#include "records/wire.hpp"

namespace cairn {

std::uint64_t LastRunRecord::ranks() const {
  std::uint64_t count = 0;
  for (const NodeOfRun& node : nodes) count += node.ranks;
  return count;
}

Blob encode(const LastRunRecord& record) {
  Encoder out;
  for (const std::string* text : {&record.job_id, &record.user, &record.version}) out.text(*text);
  out.u32(record.by_cairn_run ? 1 : 0);
  out.text(record.prefix);
  out.u64(record.nodes.size());
  for (const NodeOfRun& node : record.nodes) {
    out.text(node.name);
    out.text(node.host);
    out.u64(node.ranks);
  }
  out.text(record.cache_base);
  out.text(record.control_base);
  out.u64(record.stores.size());
  for (const StoreOfRun& store : record.stores) {
    out.text(store.path);
    out.u32(store.shared ? 1 : 0);
  }
  out.text(record.host);
  out.text(record.process.kernel);
  out.u64(record.process.process);
  out.u64(record.process.start_ticks);
  out.i64(record.started_us);
  out.i64(record.ended_us);
  return seal(RecordType::last_run, last_run_version, out.take());
}

Result<LastRunRecord> decode_last_run_record(Bytes content) {
  CAIRN_ASSIGN(const Bytes payload, open_only(content, RecordType::last_run, last_run_version));
  constexpr std::size_t least_node_bytes = 16;
  constexpr std::size_t least_store_bytes = 8;
  Decoder in(payload);
  LastRunRecord record;
  for (std::string* text : {&record.job_id, &record.user, &record.version}) *text = in.text();
  record.by_cairn_run = in.boolean();
  record.prefix = in.text();
  record.nodes.resize(in.count(least_node_bytes));
  for (NodeOfRun& node : record.nodes) node = {in.text(), in.text(), in.u64()};
  record.cache_base = in.text();
  record.control_base = in.text();
  record.stores.resize(in.count(least_store_bytes));
  for (StoreOfRun& store : record.stores) store = {in.text(), in.boolean()};
  record.host = in.text();
  record.process = {in.text(), in.u64(), in.u64()};
  record.started_us = in.i64();
  record.ended_us = in.i64();
  if (in.failed() || !in.at_end() || record.job_id.empty()) return fail_as_senseless();
  return record;
}

}  // namespace cairn
