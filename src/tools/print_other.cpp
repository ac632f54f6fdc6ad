#include "tools/print_other.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "records/wire.hpp"
#include "tools/print_command.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view shown_first[] = {"time", "host", "event", "transfer"};
constexpr std::string_view not_shown = "time_us";  // the time again

std::string field_of(const Json& entry, std::string_view key) {
  const auto field = entry.find(key);
  if (field == entry.end()) return "";
  if (field->is_number_float()) return text_of_number(field->get<double>());
  return printable(field->is_string() ? field->get<std::string>() : field->dump());
}

bool is_log_entry(const Json& line) {
  return line.is_object() && line.contains("time_us") &&
         (line.contains("event") || line.contains("transfer"));
}

bool is_shown_first(std::string_view key) {
  return std::find(std::begin(shown_first), std::end(shown_first), key) != std::end(shown_first);
}

/// Where a directory is a prefix directory, its files are below.
std::string directory_of_records(Files& files, const std::string& directory) {
  const std::string below = directory + "/.cairn";
  const auto info = files.info(below);
  return info && info->kind == Kind::folder ? below : directory;
}

bool can_be_shown(Files& files, const std::string& path) {
  const auto info = files.info(path);
  if (!info || info->kind != Kind::file) return false;
  const auto content = read_file(files, path, largest_printed_file);
  if (!content) return false;
  return !find_envelopes(*content).empty() || !find_log_entries(*content).entries.empty();
}

}  // namespace

std::string text_of_number(double number) {
  constexpr double all_digits_in_six = 1e6;
  return number < all_digits_in_six ? fmt::format("{:.6g}", number) : fmt::format("{:.0f}", number);
}

PrintedLog find_log_entries(Bytes bytes) {
  const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  PrintedLog log;
  for (std::size_t from = 0; from < content.size();) {
    const std::size_t end = std::min(content.find('\n', from), content.size());
    Json line = Json::parse(content.begin() + static_cast<std::ptrdiff_t>(from),
                            content.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (is_log_entry(line))
      log.entries.push_back(std::move(line));
    else if (end < content.size())  // what follows the last end of a line is being written
      log.lost_bytes += end + 1 - from;
    from = end + 1;
  }
  return log;
}

void add_entries(Report& report, const PrintedLog& log) {
  for (const Json& entry : log.entries) {
    std::string line;
    for (const std::string_view key : shown_first)
      if (entry.contains(key)) line += (line.empty() ? "" : "  ") + field_of(entry, key);
    for (const auto& [key, value] : entry.items())
      if (!is_shown_first(key) && key != not_shown)
        line += fmt::format("  {}={}", key, field_of(entry, key));
    report.line("{}", line);
  }
}

Result<std::vector<std::string>> printable_files(Files& files, const std::string& directory) {
  const std::string where = directory_of_records(files, directory);
  CAIRN_ASSIGN(const std::vector<std::string> names, files.list(where));
  std::vector<std::string> found;
  for (const std::string& name : names)
    if (can_be_shown(files, where + "/" + name)) found.push_back(where + "/" + name);
  return found;
}

}  // namespace cairn
