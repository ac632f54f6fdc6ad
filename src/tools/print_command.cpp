#include "tools/print_command.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "rbio/done_marker.hpp"
#include "rbio/generation.hpp"
#include "records/app_settings_record.hpp"
#include "records/last_run_record.hpp"
#include "records/prefix_id.hpp"
#include "records/wire.hpp"
#include "tools/print_other.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_numbers_on_a_line = 8;

Json json_of(const std::vector<DatasetRecord>& listing) {
  Json all = Json::array();
  for (const DatasetRecord& record : listing) all.push_back(json_of(record));
  return {{"datasets", std::move(all)}};
}

Json json_of(const std::string& current) { return {{"name", current}}; }

Json json_of(const PrefixIdRecord& record) {
  return {{"id", text_of(record.id)}, {"path", record.path}, {"inode", record.inode}};
}

Json json_of(const rbio::DoneMarker& marker) { return {{"writers", marker.writers}}; }

Json json_of(const std::vector<Entry>& entries) {
  Json all = Json::array();
  for (const Entry& entry : entries) {
    Json leaves = Json::object();
    for (const Pair& leaf : entry.children) leaves[leaf.key] = leaf.value;
    all.push_back({{"key", entry.key}, {"value", entry.value}, {"leaves", std::move(leaves)}});
  }
  return {{"settings", std::move(all)}};
}

template <auto decode>
Result<Json> json_by(const Envelope& envelope) {
  CAIRN_ASSIGN(const auto record, decode(envelope.whole));
  return json_of(record);
}

Result<Json> json_of_rank(const Envelope& envelope) {
  CAIRN_ASSIGN(const RankRecord record, decode_rank_record(envelope.payload, envelope.version));
  return json_of(record);
}

Result<Json> json_of_generation(const Envelope& envelope) {
  CAIRN_ASSIGN(const std::uint64_t generation, rbio::decode_generation(envelope.whole));
  return Json{{"generation", generation}};
}

struct KnownType {
  RecordType type{};
  std::string_view name;
  Result<Json> (*content)(const Envelope&);
};
constexpr std::array<KnownType, 11> known_types = {{
    {RecordType::rank, "rank", json_of_rank},
    {RecordType::dataset, "dataset", json_by<decode_dataset_record>},
    {RecordType::owner, "owner", json_by<decode_owner_record>},
    {RecordType::halt, "halt", json_by<decode_halt_record>},
    {RecordType::index, "listing", json_by<decode_listing>},
    {RecordType::current, "current", json_by<decode_current>},
    {RecordType::app_settings, "app settings", json_by<decode_app_settings>},
    {RecordType::last_run, "last run", json_by<decode_last_run_record>},
    {RecordType::prefix_id, "prefix id", json_by<decode_prefix_id_record>},
    {RecordType::rbio_done, "rbIO done", json_by<rbio::decode_done_marker>},
    {RecordType::rbio_generation, "rbIO generation", json_of_generation},
}};

const KnownType* find_type(RecordType type) {
  const auto* found = std::find_if(known_types.begin(), known_types.end(),
                                   [&](const KnownType& known) { return known.type == type; });
  return found == known_types.end() ? nullptr : found;
}

std::string name_of(RecordType type) {
  const KnownType* known = find_type(type);
  return known != nullptr ? std::string(known->name)
                          : fmt::format("type {}", static_cast<std::uint32_t>(type));
}

Result<Json> content_of(const Envelope& envelope) {
  if (const KnownType* known = find_type(envelope.type)) return known->content(envelope);
  return fail(Code::newer_format, "this version of Cairn does not know such records");
}

std::string text_of_value(const Json& value) {
  if (value.is_string()) return printable(value.get<std::string>());
  if (value.is_null()) return "-";
  if (value.is_number_float()) return text_of_number(value.get<double>());
  return value.dump();
}

bool is_list_of_numbers(const Json& value) {
  return value.is_array() && (value.empty() || value[0].is_number());
}

std::string text_of_numbers(const Json& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size() && i < most_numbers_on_a_line; ++i)
    text += fmt::format("{:08x} ", numbers[i].get<std::uint64_t>());
  if (numbers.size() > most_numbers_on_a_line) text += "... ";
  return text + fmt::format("({})", numbers.size());
}

/// A field to a line; what is in a field is further to the right.
void add_fields(Report& report, const Json& fields, std::size_t indent) {
  const std::string margin(indent, ' ');
  for (const auto& [name, value] : fields.items()) {
    const bool is_list = is_list_of_numbers(value);
    if (is_list || !value.is_structured()) {
      report.line("{}{}: {}", margin, name,
                  is_list ? text_of_numbers(value) : text_of_value(value));
    } else {
      report.line("{}{}:", margin, name);
      add_fields(report, value, indent + 2);
    }
  }
}

void add_record(Report& report, const Json& record) {
  report.line("{} record, version {}, {} bytes", text_of_value(record["type"]),
              record["version"].dump(), record["bytes"].dump());
  if (record.contains("content"))
    add_fields(report, record["content"], 2);
  else
    report.line("  cannot be read: {}", text_of_value(record["error"]));
}

/// All that is whole; `good` becomes false if a record is of a kind or version that is not known.
Json json_of_records(const Blob& content, std::size_t& lost_bytes, bool& good) {
  Json records = Json::array();
  for (const Envelope& envelope : find_envelopes(content)) {
    lost_bytes -= envelope.whole.size();
    Json record = {{"type", name_of(envelope.type)},
                   {"version", envelope.version},
                   {"bytes", envelope.whole.size()}};
    auto read = content_of(envelope);
    good = good && read;
    if (read)
      record["content"] = *std::move(read);
    else
      record["error"] = read.error().text;
    records.push_back(std::move(record));
  }
  return records;
}

Report report_of_records(const std::string& file, const Blob& content) {
  std::size_t lost_bytes = content.size();
  bool is_known = true;
  Json records = json_of_records(content, lost_bytes, is_known);
  Report report;
  if (!is_known) report.exit_code = exit_failure;
  for (const Json& record : records) add_record(report, record);
  if (records.empty())
    report.add_failure(fail(Code::corrupt,
                            "{} contains no record of Cairn's: cairn print shows records and "
                            "log.json, and cairn status shows run.json",
                            file));
  else if (lost_bytes > 0)
    report.add_failure(fail(Code::corrupt,
                            "{}: {} of {} bytes belong to no record, or to a damaged one", file,
                            lost_bytes, content.size()));
  report.facts = {{"file", file},
                  {"bytes", content.size()},
                  {"records", std::move(records)},
                  {"lost_bytes", lost_bytes}};
  return report;
}

Report report_of_log(const std::string& file, std::size_t bytes, const PrintedLog& log) {
  Report report;
  report.facts = {
      {"file", file}, {"bytes", bytes}, {"entries", log.entries}, {"lost_bytes", log.lost_bytes}};
  add_entries(report, log);
  if (log.lost_bytes > 0)
    report.add_failure(fail(Code::corrupt,
                            "{}: {} of {} bytes are in lines that are no entries of a log", file,
                            log.lost_bytes, bytes));
  return report;
}

tl::unexpected<Error> refuse_directory(const std::string& directory, Files& files) {
  const auto found = printable_files(files, directory);
  if (!found) return tl::unexpected(found.error());
  if (found->empty())
    return fail(Code::bad_argument,
                "{} is a directory, and no file in it can be printed: name a file", directory);
  return fail(Code::bad_argument, "{} is a directory; name one of the files in it: {}", directory,
              fmt::join(*found, ", "));
}

Result<Report> show(const std::string& file, Files& files) {
  const auto info = files.info(file + "/.");
  if (info && info->kind == Kind::folder) return refuse_directory(file, files);
  CAIRN_ASSIGN(const Blob content, read_file(files, file, largest_printed_file));
  const PrintedLog log = find_log_entries(content);
  return log.entries.empty() ? report_of_records(file, content)
                             : report_of_log(file, content.size(), log);
}

}  // namespace

int run_print_command(const PrintCommand& command, Files& files, std::ostream& out,
                      const Log& log) {
  return print_report(show(command.file, files), command.json, out, log);
}

}  // namespace cairn
