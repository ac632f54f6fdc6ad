#include "tools/record_json.hpp"

#include <algorithm>

#include "base/local_time.hpp"
#include "config/descriptors.hpp"
#include "records/state_words.hpp"
#include "tools/cache_state.hpp"
#include "transfer/io_threads.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

bool has_text(std::int64_t time_us) { return time_us > 0 && time_us / 1'000'000 <= latest_time_s; }

/// At the end, and without looking for an older one of that name: there are many of these.
void put(Json& json, std::string name, Json value) {
  json.get_ref<Json::object_t&>().emplace_back(std::move(name), std::move(value));
}

void put_time(Json& json, const std::string& name, std::int64_t time_us) {
  put(json, name, has_text(time_us) ? Json(time_text(time_us)) : Json());
  put(json, name + "_us", time_us);
}

Json json_of_seconds(const std::optional<std::int64_t>& time_s) {
  return time_s ? Json(format_local_time(*time_s)) : Json();
}

Json json_of(const std::optional<std::int64_t>& number) { return number ? Json(*number) : Json(); }

void put_info(Json& json, const DatasetInfo& info) {
  put(json, "number", info.number);
  put(json, "name", info.name);
  put(json, "uuid", text_of(info.uuid));
  put(json, "kind", kind_of(info));
  put(json, "checkpoint", info.checkpoint);
  put(json, "flags", info.flags);
  put(json, "in_place", info.in_place());
  put(json, "found", info.was_found());
  put(json, "ranks", info.ranks);
  put_time(json, "begun", info.uuid.time_us);
}

}  // namespace

std::string_view word_for(const DatasetRecord& record) { return words_of(state_of(record)).word; }

std::string_view kind_of(const DatasetInfo& info) {
  if (info.is_checkpoint()) return info.is_output() ? "both" : "checkpoint";
  return info.is_output() ? "output" : "neither";
}

nlohmann::ordered_json json_of(const DatasetRecord& record) {
  Json json = Json::object();
  json.get_ref<Json::object_t&>().reserve(24);
  put_info(json, record.info);
  put(json, "state", word_for(record));
  put(json, "job", record.job_id);
  put(json, "files", record.files);
  put(json, "bytes", record.bytes);
  put(json, "ranks_per_manifest", record.ranks_per_manifest);
  put(json, "settled", record.settled);
  put_time(json, "flushed", record.flushed_us);
  put_time(json, "fetched", record.fetched_us);
  put_time(json, "failed", record.failed_us);
  put(json, "failure", record.failure);
  put(json, "attempts", record.attempts);
  put(json, "quarantined", record.quarantined);
  put(json, "replaced_by", record.replaced_by.empty() ? Json() : Json(record.replaced_by));
  return json;
}

nlohmann::ordered_json json_of(const OwnerRecord& record) {
  Json json = Json::object();
  put(json, "epoch", record.epoch);
  put(json, "run", text_of(record.run));
  put(json, "job", record.job_id);
  put(json, "user", record.user);
  put(json, "host", record.host);
  put(json, "process", record.process);
  put(json, "ended", record.beat_us == 0);
  put_time(json, "started", record.started_us);
  put_time(json, "beat", record.beat_us);
  return json;
}

nlohmann::ordered_json json_of(const HaltRecord& record) {
  return {{"checkpoints_left", json_of(record.checkpoints_left)},
          {"exit_before", json_of_seconds(record.exit_before_s)},
          {"exit_before_s", json_of(record.exit_before_s)},
          {"exit_after", json_of_seconds(record.exit_after_s)},
          {"exit_after_s", json_of(record.exit_after_s)},
          {"halt_seconds", json_of(record.halt_seconds)},
          {"reason", record.reason.empty() ? Json() : Json(record.reason)},
          {"immediate", record.immediate}};
}

nlohmann::ordered_json json_of(const LastRunRecord& record) {
  Json json = Json::object();
  put(json, "job", record.job_id);
  put(json, "user", record.user);
  put(json, "version", record.version);
  put(json, "by_cairn_run", record.by_cairn_run);
  put(json, "prefix", record.prefix);
  json["nodes"] = Json::array();
  for (const NodeOfRun& node : record.nodes)
    json["nodes"].push_back({{"name", node.name}, {"host", node.host}, {"ranks", node.ranks}});
  put(json, "cache_base", record.cache_base);
  put(json, "control_base", record.control_base);
  json["stores"] = Json::array();
  for (const StoreOfRun& store : record.stores)
    json["stores"].push_back({{"path", store.path}, {"shared", store.shared}});
  put(json, "host", record.host);
  put(json, "kernel", record.process.kernel);
  put(json, "process", record.process.process);
  put(json, "start_ticks", record.process.start_ticks);
  put_time(json, "started", record.started_us);
  put_time(json, "ended", record.ended_us);
  return json;
}

nlohmann::ordered_json json_of(const FileEntry& file) {
  Json json = {{"name", file.name},
               {"size", file.size},
               {"mode", fmt::format("{:04o}", file.mode)},
               {"owner", file.owner},
               {"group", file.group},
               {"access_ns", file.times.access_ns},
               {"modify_ns", file.times.modify_ns}};
  if (file.part) json["part"] = {{"begin", file.begin()}, {"length", file.length()}};
  return json;
}

nlohmann::ordered_json json_of(const RankRecord& record) {
  Json json;
  json["dataset"] = Json::object();
  put_info(json["dataset"], record.dataset);
  json["rank"] = record.rank;
  json["files"] = Json::array();
  for (const FileEntry& file : record.files) json["files"].push_back(json_of(file));
  const Encoding& encoding = record.encoding;
  Json members = Json::array();
  for (std::size_t i = 0; i < encoding.members.size(); ++i)
    members.push_back({{"rank", encoding.members[i]},
                       {"bytes", encoding.member_bytes[i]},
                       {"node", encoding.member_nodes[i]}});
  json["encoding"] = {{"generation", encoding.generation},   {"scheme", name_of(encoding.scheme)},
                      {"failures", encoding.failures},       {"hop", encoding.hop},
                      {"block_bytes", encoding.block_bytes}, {"members", std::move(members)}};
  if (record.exposure) {
    json["state"] = name_of(CacheState::written);
    json["note"] = fmt::format("this part is {}", words_of(CacheState::written).sentence);
    json["boot"] = record.exposure->boot;
    put_time(json, "written", record.exposure->since_us);
  }
  json["data_crcs"] = record.data_crcs;
  json["parity_crcs"] = record.parity_crcs;
  return json;
}

std::string time_text(std::int64_t time_us) {
  return has_text(time_us) ? format_local_time(time_us / 1'000'000) : "never";
}

void write_json(std::ostream& out, const nlohmann::ordered_json& head, std::string_view key,
                const std::vector<DatasetRecord>& datasets) {
  constexpr std::size_t at_a_time = 512;
  constexpr int threads = 4;
  std::vector<std::string> pieces((datasets.size() + at_a_time - 1) / at_a_time);
  const auto background = make_background_thread();
  (void)IoThreads{*background, threads}.each(pieces.size(), [&](std::size_t piece) -> Status {
    const std::size_t end = std::min(datasets.size(), (piece + 1) * at_a_time);
    for (std::size_t i = piece * at_a_time; i < end; ++i) {
      pieces[piece] += i == 0 ? "\n    " : ",\n    ";
      pieces[piece] += json_of(datasets[i]).dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    return {};
  });
  std::string text = text_of_json(head);
  text.resize(text.size() - std::string_view("\n}\n").size());
  out << text << fmt::format(",\n  \"{}\": [", key);
  for (const std::string& piece : pieces) out << piece;
  out << (datasets.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

std::string text_of_json(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string printable(std::string text) {
  const auto is_command = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  std::replace_if(text.begin(), text.end(), is_command, '?');
  return text;
}

}  // namespace cairn
