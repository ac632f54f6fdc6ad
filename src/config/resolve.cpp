#include "config/resolve.hpp"

#include <algorithm>
#include <array>

#include "config/descriptors.hpp"
#include "config/layers.hpp"
#include "config/options.hpp"

namespace cairn {
namespace {

/// The first of the variables that is set and not empty.
template <std::size_t Count>
std::optional<Sourced> first_set(const ProcessFacts& process,
                                 const std::array<const char*, Count>& variables) {
  for (const char* variable : variables) {
    const auto found = process.environment.find(variable);
    if (found != process.environment.end() && !found->second.empty())
      return Sourced{found->second, fmt::format("environment, {}", variable)};
  }
  return std::nullopt;
}

/// The default of an option that depends on the process: its user, host and directory.
std::optional<Sourced> default_from_process(std::string_view key, const SettingSources& sources) {
  const ProcessFacts& process = sources.process;
  if (key == "SCR_PREFIX") return Sourced{process.working_folder, "working directory"};
  if (key == "SCR_NODE_NAME") return Sourced{process.host_name, "host name"};
  if (key == "SCR_USER_NAME")
    return first_set(process, std::array{"USER"})
        .value_or(Sourced{std::to_string(process.user_id), "user id"});
  if (key == "SCR_JOB_ID")
    return first_set(process, std::array{"FLUX_JOB_ID", "SLURM_JOBID", "SLURM_JOB_ID", "PBS_JOBID",
                                         "LSB_JOBID"})
        .value_or(Sourced{std::string(unnamed_job), "default"});
  if (key == "SCR_CONF_FILE" && !sources.user_file.name.empty())
    return Sourced{sources.user_file.name, "default"};
  return std::nullopt;
}

Sourced text_of(const Option& option, const Layers& layers, const SettingSources& sources) {
  const auto given = layers.values.find(option.key);
  if (given != layers.values.end())
    return from_working_folder(option.rule, given->second, sources.process.working_folder);
  return default_from_process(option.key, sources)
      .value_or(Sourced{std::string(option.default_text), "default"});
}

/// "KEY=VALUE (SOURCE)"
std::string origin_of(const ResolvedSettings& resolved, const std::string& key) {
  const ResolvedOption& option = *resolved.find(key);
  return fmt::format("{}={} ({})", key, option.value, option.source);
}

Status resolve_option(const Option& option, const Sourced& text, ResolvedSettings& resolved) {
  const std::string unit = option.unit.empty() ? "" : fmt::format(" [{}]", option.unit);
  ResolvedOption shown{std::string(option.key), text.value, text.source,
                       std::string(option.help) + unit, option.flags.use == Use::now};
  // An empty default is not checked; a default taken from the process must be valid.
  if (!text.value.empty() || text.source != "default") {
    CAIRN_ASSIGN(const Value value, read_value(option.rule, shown.key, text));
    if (option.set) option.set(resolved.settings, value);
    shown.value = option.flags.secret ? "(not shown)" : value.text;
    shown.bytes = bytes_of(option.rule, value);
  }
  resolved.options.push_back(std::move(shown));
  return {};
}

/// "KEY (SOURCE), ..." of the settings with this use that were set.
std::string given_for(Use use, const Layers& layers) {
  std::vector<std::string> found;
  for (const auto& [key, given] : layers.values)
    if (find_option(key)->flags.use == use)
      found.push_back(fmt::format("{} ({})", key, given.source));
  return fmt::format("{}", fmt::join(found, ", "));
}

void note_without_effect(const Layers& layers, ResolvedSettings& resolved) {
  if (const std::string found = given_for(Use::later, layers); !found.empty())
    resolved.notes.push_back(fmt::format(
        "no effect in this version of Cairn; a later version will act on it: {}", found));
  if (const std::string found = given_for(Use::never, layers); !found.empty())
    resolved.notes.push_back(fmt::format(
        "no effect in Cairn, which does not need it; remove it when SCR no longer reads it: {}",
        found));
}

/// SCR accepts a cache of 0 datasets; Cairn always keeps the newest checkpoint.
void keep_at_least_one(const Option& option, Sourced& text, std::vector<std::string>& warnings) {
  if (option.key != "SCR_CACHE_SIZE" || text.value != "0") return;
  warnings.push_back(
      fmt::format("SCR_CACHE_SIZE=0 ({}) counts as 1, because the newest checkpoint is always kept",
                  text.source));
  text = {"1", text.source};
}

void warn_missing_file(const Layers& layers, const SettingSources& sources,
                       std::vector<std::string>& warnings) {
  const auto named = layers.values.find("SCR_CONF_FILE");
  if (named == layers.values.end() || !sources.user_file.name.empty()) return;
  warnings.push_back(
      fmt::format("SCR_CONF_FILE={} ({}) does not exist, so no configuration file of the user is "
                  "read; correct it, or remove it to read .scrconf in the prefix directory",
                  named->second.value, named->second.source));
}

/// A value that is not allowed is a problem; its default replaces it, so that the other options can
/// be checked.
void resolve_options(const Layers& layers, const SettingSources& sources,
                     ResolvedSettings& resolved, std::vector<std::string>& problems) {
  for (const Option& option : options()) {
    Sourced text = text_of(option, layers, sources);
    keep_at_least_one(option, text, resolved.warnings);
    const Status done = resolve_option(option, text, resolved);
    if (done) continue;
    problems.push_back(done.error().text);
    (void)resolve_option(option, {std::string(option.default_text), "default"}, resolved);
  }
}

/// Returns all errors.
std::vector<std::string> resolve_all(const SettingSources& sources, ResolvedSettings& resolved) {
  const Layers layers = read_layers(sources);
  resolved.warnings = layers.warnings;
  warn_missing_file(layers, sources, resolved.warnings);
  resolved.notes = layers.notes;
  std::vector<std::string> problems = layers.problems;
  resolve_options(layers, sources, resolved, problems);
  resolved.settings.prefix_origin = origin_of(resolved, "SCR_PREFIX");
  resolved.settings.control_origin = origin_of(resolved, "SCR_CNTL_BASE");
  note_without_effect(layers, resolved);
  resolve_descriptors(layers, resolved, problems);
  return problems;
}

/// A single problem on one line; of several, each on its own line.
Error error_of(const std::vector<std::string>& problems, const std::vector<std::string>& warnings) {
  if (problems.size() == 1) {
    std::string text = problems[0];
    // A mistyped key may be the reason why another value is wrong.
    for (const std::string& warning : warnings) text += "; also: " + warning;
    return {Code::bad_setting, text, -1};
  }
  std::string text = fmt::format("{} settings are wrong:", problems.size());
  for (const std::string& problem : problems) text += "\n  " + problem;
  for (const std::string& warning : warnings) text += "\n  also: " + warning;
  return {Code::bad_setting, text, -1};
}

}  // namespace

std::optional<std::uint64_t> bytes_of(const Rule& rule, const Value& value) {
  if (rule.type != ValueType::bytes) return std::nullopt;
  return value.number;
}

const ResolvedOption* ResolvedSettings::find(const std::string& key) const {
  const auto option = std::find_if(options.begin(), options.end(),
                                   [&](const ResolvedOption& o) { return o.key == key; });
  return option == options.end() ? nullptr : &*option;
}

std::optional<std::string> ResolvedSettings::value_of(const std::string& key) const {
  const ResolvedOption* option = find(key);
  if (option == nullptr || option->value.empty()) return std::nullopt;
  return option->value;
}

Result<ResolvedSettings> resolve(const SettingSources& sources) {
  ResolvedSettings resolved;
  const std::vector<std::string> problems = resolve_all(sources, resolved);
  if (problems.empty()) return resolved;
  return tl::unexpected(error_of(problems, resolved.warnings));
}

}  // namespace cairn
