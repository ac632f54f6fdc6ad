#include "config/gather.hpp"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <filesystem>
#include <optional>

#include "config/layers.hpp"
#include "config/options.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t max_file_bytes = 1 << 20;

std::map<std::string, std::string> environment_of_process() {
  std::map<std::string, std::string> environment;
  for (char** variable = environ; variable && *variable; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

Result<SettingsFile> read_settings_file(Files& files, const std::string& path,
                                        const ProcessFacts& process) {
  CAIRN_ASSIGN(const Blob content, read_file(files, path, max_file_bytes));
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  ParsedFile parsed = parse_entries(text, path, environment_of(process));
  return SettingsFile{path, std::move(parsed.entries), std::move(parsed.problems)};
}

/// A missing file has no name and no entries.
Result<SettingsFile> read_if_there(Files& files, const std::string& path,
                                   const ProcessFacts& process) {
  auto file = read_settings_file(files, path, process);
  if (!file && file.error().code == Code::not_found) return SettingsFile{};
  return file;
}

/// Nothing if the value is not a path: resolve() reports that with all other errors.
std::optional<std::string> path_option(const Layers& layers, const std::string& key,
                                       const std::string& otherwise, const ProcessFacts& process) {
  const auto given = layers.values.find(key);
  if (given == layers.values.end()) return otherwise;
  const Rule& rule = find_option(key)->rule;
  const auto path =
      read_value(rule, key, from_working_folder(rule, given->second, process.working_folder));
  return path ? std::optional(path->text) : std::nullopt;
}

/// `sources` has everything except the user's file, so that file cannot set its own place.
Result<SettingsFile> read_user_file(Files& files, const ProcessFacts& process,
                                    const SettingSources& sources) {
  const Layers layers = read_layers(sources);
  const auto named = path_option(layers, "SCR_CONF_FILE", "", process);
  const auto prefix = path_option(layers, "SCR_PREFIX", process.working_folder, process);
  if (!named || !prefix) return SettingsFile{};
  return read_if_there(files, named->empty() ? normalise(".scrconf", *prefix) : *named, process);
}

/// Empty if the user database does not know the user.
std::string name_of_user(uid_t user) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  const int error = getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found);
  return error == 0 && found != nullptr ? found->pw_name : "";
}

}  // namespace

ProcessFacts current_process() {
  ProcessFacts process;
  process.environment = environment_of_process();
  std::array<char, HOST_NAME_MAX + 1> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) process.host_name = host.data();
  if (process.host_name.empty()) process.host_name = "localhost";
  std::error_code ignored;  // an empty path is an error later, unless SCR_PREFIX is set
  process.working_folder = std::filesystem::current_path(ignored).string();
  process.user_id = geteuid();
  // Only if USER is not set: all ranks call this, and the user database may be on a server.
  const auto given = process.environment.find("USER");
  if (given == process.environment.end() || given->second.empty())
    if (std::string name = name_of_user(geteuid()); !name.empty())
      process.environment["USER"] = std::move(name);
  return process;
}

std::string system_settings_path() { return CAIRN_SYSTEM_CONF; }

Result<SettingSources> gather_sources(Files& files, const ProcessFacts& process,
                                      const std::vector<Entry>& app_entries,
                                      const std::string& system_path) {
  SettingSources sources;
  sources.process = process;
  std::erase_if(sources.process.environment,
                [](const auto& variable) { return !concerns_settings(variable.first); });
  for (auto& [key, value] : sources.process.environment) {
    const Option* option = find_option(key);
    if (option == nullptr) continue;
    CAIRN_ASSIGN(value, expanded(*option, value, process));
  }
  sources.app_entries = app_entries;
  CAIRN_ASSIGN(sources.system_file, read_if_there(files, system_path, process));
  CAIRN_ASSIGN(sources.user_file, read_user_file(files, process, sources));
  return sources;
}

}  // namespace cairn
