#include "records/event.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/local_time.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

/// Replaces invalid UTF-8, as the program chooses the names.
std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string local_time(std::int64_t now_us) { return format_local_time(now_us / 1'000'000); }

const char* key_of(Event::Kind kind, const char* event, const char* transfer) {
  return kind == Event::Kind::event ? event : transfer;
}

/// Replaces line breaks, so that a path with one does not split the line.
std::string one_line(std::string text) {
  for (char& letter : text)
    if (letter == '\n' || letter == '\r') letter = ' ';
  return text;
}

}  // namespace

std::optional<double> Event::bytes_per_s() const {
  if (!bytes || !seconds || *seconds <= 0) return std::nullopt;
  return static_cast<double>(*bytes) / *seconds;
}

std::string text_line(const Event& event, const EventOrigin& origin, std::int64_t now_us) {
  std::string line = fmt::format("{}: host={}, jobid={}, {}={}", local_time(now_us), origin.host,
                                 origin.job_id, key_of(event.kind, "event", "xfer"), event.name);
  const auto add = [&line](const char* key, const std::string& value) {
    line += fmt::format(", {}={}", key, value);
  };
  if (!event.note.empty()) add("note", dump(event.note));
  if (!event.code.empty()) add("code", event.code);
  if (!event.from.empty()) add("from", one_line(event.from));
  if (!event.to.empty()) add("to", one_line(event.to));
  if (event.dataset != 0) add("dset", fmt::format("{}", event.dataset));
  if (!event.dataset_name.empty()) add("name", dump(event.dataset_name));
  if (!event.scheme.empty()) add("scheme", event.scheme);
  if (event.set_size != 0) add("set", fmt::format("{}", event.set_size));
  if (event.seconds) add("secs", fmt::format("{:.6f}", *event.seconds));
  if (event.bytes) add("bytes", fmt::format("{}", *event.bytes));
  if (event.files) add("files", fmt::format("{}", *event.files));
  if (const auto rate = event.bytes_per_s()) add("rate", fmt::format("{:.0f}", *rate));
  return line;
}

std::string json_line(const Event& event, const EventOrigin& origin, std::int64_t now_us) {
  Json line;
  line["time"] = local_time(now_us);
  line["time_us"] = now_us;
  line["host"] = origin.host;
  line["job"] = origin.job_id;
  line[key_of(event.kind, "event", "transfer")] = event.name;
  if (!event.note.empty()) line["note"] = event.note;
  if (!event.code.empty()) line["code"] = event.code;
  if (event.ranks != 0) line["ranks"] = event.ranks;
  if (!event.from.empty()) line["from"] = event.from;
  if (!event.to.empty()) line["to"] = event.to;
  if (event.dataset != 0) line["dataset"] = event.dataset;
  if (!event.dataset_name.empty()) line["name"] = event.dataset_name;
  if (!event.scheme.empty()) line["scheme"] = event.scheme;
  if (event.set_size != 0) line["set_size"] = event.set_size;
  if (event.output) line["output"] = true;
  if (event.seconds) line["seconds"] = *event.seconds;
  if (event.bytes) line["bytes"] = *event.bytes;
  if (event.files) line["files"] = *event.files;
  if (const auto rate = event.bytes_per_s()) line["rate"] = std::round(*rate);
  return dump(line);
}

}  // namespace cairn
