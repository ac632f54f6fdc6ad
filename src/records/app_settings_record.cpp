#include "records/app_settings_record.hpp"

#include "records/wire.hpp"

namespace cairn {
namespace {

void put(Encoder& out, std::string_view key, std::string_view value) {
  out.text(key);
  out.text(value);
}

}  // namespace

Blob encode_app_settings(const std::vector<Entry>& entries) {
  Encoder out;
  out.u64(entries.size());
  for (const Entry& entry : entries) {
    put(out, entry.key, entry.value);
    out.u64(entry.children.size());
    for (const Pair& leaf : entry.children) put(out, leaf.key, leaf.value);
  }
  return seal(RecordType::app_settings, app_settings_version, out.take());
}

Result<std::vector<Entry>> decode_app_settings(Bytes content) {
  CAIRN_ASSIGN(const Bytes payload,
               open_only(content, RecordType::app_settings, app_settings_version));
  constexpr std::size_t pair_bytes = 8;  // the size of two empty texts
  Decoder in(payload);
  std::vector<Entry> entries(in.count(pair_bytes + 8));
  for (Entry& entry : entries) {
    entry.key = in.text();
    entry.value = in.text();
    entry.children.resize(in.count(pair_bytes));
    for (Pair& leaf : entry.children) leaf = {in.text(), in.text()};
  }
  if (in.failed() || !in.at_end()) return fail_as_senseless();
  return entries;
}

}  // namespace cairn
