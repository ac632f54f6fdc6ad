#include "tools/print_command.hpp"

#include <fmt/ranges.h>

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

std::string name_of(RecordType type) {
  switch (type) {
    case RecordType::rank:
      return "rank";
    case RecordType::dataset:
      return "dataset";
    case RecordType::owner:
      return "owner";
    case RecordType::halt:
      return "halt";
    case RecordType::index:
      return "listing";
    case RecordType::current:
      return "current";
    case RecordType::app_settings:
      return "app settings";
    case RecordType::last_run:
      return "last run";
    case RecordType::prefix_id:
      return "prefix id";
    case RecordType::rbio_done:
      return "rbIO done";
    case RecordType::rbio_generation:
      return "rbIO generation";
  }
  return fmt::format("type {}", static_cast<std::uint32_t>(type));
}

template <class Decoded>
Result<Json> json_or_error(const Decoded& decoded) {
  CAIRN_TRY(decoded);
  return json_of(*decoded);
}

Result<Json> json_of_listing(Bytes whole) {
  CAIRN_ASSIGN(const auto listing, decode_listing(whole));
  Json all = Json::array();
  for (const DatasetRecord& record : listing) all.push_back(json_of(record));
  return Json{{"datasets", std::move(all)}};
}

Result<Json> json_of_current(Bytes whole) {
  CAIRN_ASSIGN(const std::string name, decode_current(whole));
  return Json{{"name", name}};
}

Result<Json> json_of_prefix_id(Bytes whole) {
  CAIRN_ASSIGN(const PrefixIdRecord record, decode_prefix_id_record(whole));
  return Json{{"id", text_of(record.id)}, {"path", record.path}, {"inode", record.inode}};
}

Result<Json> json_of_done_marker(Bytes whole) {
  CAIRN_ASSIGN(const rbio::DoneMarker marker, rbio::decode_done_marker(whole));
  return Json{{"writers", marker.writers}};
}

Result<Json> json_of_generation(Bytes whole) {
  CAIRN_ASSIGN(const std::uint64_t generation, rbio::decode_generation(whole));
  return Json{{"generation", generation}};
}

Result<Json> json_of_app_settings(Bytes whole) {
  CAIRN_ASSIGN(const auto entries, decode_app_settings(whole));
  Json all = Json::array();
  for (const Entry& entry : entries) {
    Json leaves = Json::object();
    for (const Pair& leaf : entry.children) leaves[leaf.key] = leaf.value;
    all.push_back({{"key", entry.key}, {"value", entry.value}, {"leaves", std::move(leaves)}});
  }
  return Json{{"settings", std::move(all)}};
}

Result<Json> content_of(const Envelope& envelope) {
  switch (envelope.type) {
    case RecordType::rank:
      return json_or_error(decode_rank_record(envelope.payload, envelope.version));
    case RecordType::dataset:
      return json_or_error(decode_dataset_record(envelope.whole));
    case RecordType::owner:
      return json_or_error(decode_owner_record(envelope.whole));
    case RecordType::halt:
      return json_or_error(decode_halt_record(envelope.whole));
    case RecordType::index:
      return json_of_listing(envelope.whole);
    case RecordType::current:
      return json_of_current(envelope.whole);
    case RecordType::app_settings:
      return json_of_app_settings(envelope.whole);
    case RecordType::last_run:
      return json_or_error(decode_last_run_record(envelope.whole));
    case RecordType::prefix_id:
      return json_of_prefix_id(envelope.whole);
    case RecordType::rbio_done:
      return json_of_done_marker(envelope.whole);
    case RecordType::rbio_generation:
      return json_of_generation(envelope.whole);
  }
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
