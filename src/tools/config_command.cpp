#include "tools/config_command.hpp"

#include <algorithm>

#include "config/options.hpp"
#include "tools/report.hpp"
#include "tools/wrapped_text.hpp"

namespace cairn {
namespace {

// A longer text moves only the rest of its own line to the right.
constexpr std::size_t widest_column = 28;
constexpr std::size_t help_indent = 6;

std::size_t width_of(const std::vector<ResolvedOption>& options,
                     std::string ResolvedOption::*column) {
  std::size_t width = 0;
  for (const ResolvedOption& option : options)
    width = std::max(width, std::min((option.*column).size(), widest_column));
  return width;
}

std::string shown_value(const ResolvedOption& option) {
  return option.value.empty() ? "-" : option.value;
}

/// A setting is meant by its key, and all settings of a line by the key of the line.
bool is_named(const ResolvedOption& option, const std::string& name) {
  return option.key == name || option.key.starts_with(name + " ");
}

bool is_chosen(const ResolvedOption& option, const ConfigCommand& command) {
  const bool is_changed = option.source != "default";
  const auto names_it = [&](const std::string& name) { return is_named(option, name); };
  return (is_changed || !command.only_changed) &&
         (command.names.empty() ||
          std::any_of(command.names.begin(), command.names.end(), names_it));
}

/// The requested settings; an unknown name is an error.
Result<ResolvedSettings> chosen(ResolvedSettings all, const ConfigCommand& command) {
  for (const std::string& name : command.names) {
    if (std::any_of(all.options.begin(), all.options.end(),
                    [&](const ResolvedOption& option) { return is_named(option, name); }))
      continue;
    std::vector<std::string_view> keys;
    for (const ResolvedOption& option : all.options) keys.push_back(option.key);
    return fail(Code::bad_argument, "there is no setting {}{}", name, did_you_mean(name, keys));
  }
  std::erase_if(all.options,
                [&](const ResolvedOption& option) { return !is_chosen(option, command); });
  return all;
}

std::string settings_table(const ResolvedSettings& resolved) {
  const auto& options = resolved.options;
  const std::size_t key = width_of(options, &ResolvedOption::key);
  const std::size_t value = width_of(options, &ResolvedOption::value);
  std::string table;
  for (const bool used : {true, false}) {
    bool is_first = true;
    for (const ResolvedOption& option : options) {
      if (option.used != used) continue;
      if (!used && is_first) table += "\nAccepted, but without effect in this version:\n";
      is_first = false;
      table += fmt::format("{:<{}}  {:<{}}  {}\n{}\n", option.key, key, shown_value(option), value,
                           option.source, wrapped(option.help, help_indent));
    }
  }
  return table;
}

Report report_of_settings(const ResolvedSettings& resolved) {
  Report report;
  report.text = settings_table(resolved);
  report.facts = {{"settings", nlohmann::ordered_json::array()},
                  {"warnings", resolved.warnings},
                  {"notes", resolved.notes}};
  for (const ResolvedOption& option : resolved.options) {
    nlohmann::ordered_json one = {{"key", option.key},
                                  {"value", option.value},
                                  {"source", option.source},
                                  {"help", option.help},
                                  {"used", option.used}};
    if (option.bytes) one["bytes"] = *option.bytes;
    report.facts["settings"].push_back(std::move(one));
  }
  return report;
}

Result<Report> show(const ConfigCommand& command, Files& files, const ProcessFacts& process,
                    const Log& log) {
  CAIRN_ASSIGN(ResolvedSettings resolved, read_job_settings(command.source, files, process, log));
  // Other commands read the settings first, and then report this.
  if (!command.json && !command.source.prefix.empty())
    CAIRN_TRY(check_prefix_folder(files, resolved.settings.prefix));
  for (const std::string& note : resolved.notes) log.info("{}", note);
  return chosen(std::move(resolved), command).map(report_of_settings);
}

}  // namespace

int run_config_command(const ConfigCommand& command, Files& files, const ProcessFacts& process,
                       std::ostream& out, const Log& log) {
  return print_report(show(command, files, process, log), command.json, out, log,
                      {Code::bad_argument, exit_usage});
}

}  // namespace cairn
