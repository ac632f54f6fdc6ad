#include "tools/print_command.hpp"

#include <fmt/ranges.h>

#include "rbio/done_marker.hpp"
#include "records/app_settings_record.hpp"
#include "records/last_run_record.hpp"
#include "records/prefix_id.hpp"
#include "records/wire.hpp"
#include "tools/exit_codes.hpp"
#include "tools/print_other.hpp"
#include "tools/record_json.hpp"

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
void print_fields(std::ostream& out, const Json& fields, std::size_t indent) {
  const std::string margin(indent, ' ');
  for (const auto& [name, value] : fields.items()) {
    if (is_list_of_numbers(value)) {
      out << margin << name << ": " << text_of_numbers(value) << "\n";
    } else if (value.is_structured()) {
      out << margin << name << ":\n";
      print_fields(out, value, indent + 2);
    } else {
      out << margin << name << ": " << text_of_value(value) << "\n";
    }
  }
}

void print_text(std::ostream& out, const Json& all) {
  for (const Json& record : all["records"]) {
    out << text_of_value(record["type"]) << " record, version " << record["version"] << ", "
        << record["bytes"] << " bytes\n";
    if (record.contains("content"))
      print_fields(out, record["content"], 2);
    else
      out << "  cannot be read: " << text_of_value(record["error"]) << "\n";
  }
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

bool print_records(const PrintCommand& command, const Blob& content, std::ostream& out,
                   const Log& log) {
  std::size_t lost_bytes = content.size();
  bool good = true;
  Json records = json_of_records(content, lost_bytes, good);
  const bool any = !records.empty();
  const Json all = {{"file", command.file},
                    {"bytes", content.size()},
                    {"records", std::move(records)},
                    {"lost_bytes", lost_bytes}};
  if (command.json)
    out << text_of_json(all);
  else
    print_text(out, all);
  if (!any)
    log.error(
        "{} contains no record of Cairn's: cairn print shows records and log.json, and cairn "
        "status shows run.json",
        command.file);
  else if (lost_bytes > 0)
    log.error("{}: {} of {} bytes belong to no record, or to a damaged one", command.file,
              lost_bytes, content.size());
  return good && lost_bytes == 0 && any;
}

bool print_entries(const PrintCommand& command, std::size_t bytes, const PrintedLog& entries,
                   std::ostream& out, const Log& log) {
  if (command.json)
    out << text_of_json({{"file", command.file},
                         {"bytes", bytes},
                         {"entries", entries.entries},
                         {"lost_bytes", entries.lost_bytes}});
  else
    print_log(out, entries);
  if (entries.lost_bytes > 0)
    log.error("{}: {} of {} bytes are in lines that are no entries of a log", command.file,
              entries.lost_bytes, bytes);
  return entries.lost_bytes == 0;
}

void refuse_directory(const std::string& directory, Files& files, const Log& log) {
  const auto found = printable_files(files, directory);
  if (!found)
    log.error("{}", found.error().text);
  else if (found->empty())
    log.error("{} is a directory, and no file in it can be printed: name a file", directory);
  else
    log.error("{} is a directory; name one of the files in it: {}", directory,
              fmt::join(*found, ", "));
}

bool print_file(const PrintCommand& command, Files& files, std::ostream& out, const Log& log) {
  const auto content = read_file(files, command.file, largest_printed_file);
  if (!content) {
    log.error("{}", content.error().text);
    return false;
  }
  const PrintedLog entries = find_log_entries(*content);
  return entries.entries.empty() ? print_records(command, *content, out, log)
                                 : print_entries(command, content->size(), entries, out, log);
}

}  // namespace

int run_print_command(const PrintCommand& command, Files& files, std::ostream& out,
                      const Log& log) {
  const auto info = files.info(command.file + "/.");
  const bool is_directory = info && info->kind == Kind::folder;
  if (is_directory) refuse_directory(command.file, files, log);
  const bool good = !is_directory && print_file(command, files, out, log);
  out << std::flush;
  return good && out ? exit_ok : exit_failure;
}

}  // namespace cairn
