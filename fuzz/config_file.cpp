// The configuration files, and the settings that they resolve to. An input is the text of the
// user's file, a zero byte, that of the system's, a zero byte, and variables, one on a line.
#include <algorithm>

#include "config/options.hpp"
#include "config/resolve.hpp"
#include "decoder.hpp"
#include "records/set_layout.hpp"

namespace cairn::fuzz {
namespace {

constexpr int most_members = 256;

std::map<std::string, std::string> environment_of(std::string_view text) {
  std::map<std::string, std::string> environment;
  for (const std::string_view line : split(text, '\n'))
    if (const auto equals = line.find('='); equals != std::string_view::npos)
      environment.emplace(line.substr(0, equals), line.substr(equals + 1));
  return environment;
}

/// The entries of a file. What is wrong with other lines is said by file and line.
std::vector<Entry> entries_of(std::string_view text, const std::string& name,
                              const Lookup& variable) {
  ParsedFile parsed = parse_entries(text, name, variable);
  for (const std::string& problem : parsed.problems)
    expect(problem.starts_with(name + ":"), "a problem names the file");
  return std::move(parsed.entries);
}

/// Whatever a checkpoint line says can be done with a set of any size.
void check_checkpoint(const CheckpointSettings& checkpoint, std::uint64_t block_bytes) {
  for (const int members : {1, 2, 3, checkpoint.set_size, most_members}) {
    std::vector<int> ranks(static_cast<std::size_t>(members));
    Encoding encoding = make_encoding(checkpoint, ranks, static_cast<std::uint32_t>(block_bytes));
    encoding.member_nodes.resize(ranks.size());
    encoding.member_bytes.resize(ranks.size());
    expect(is_sound(encoding), "a checkpoint line gives a sound encoding");
  }
}

void check_settings(const ResolvedSettings& resolved) {
  for (const Option& option : options())
    expect(resolved.find(std::string(option.key)) != nullptr, "every option is shown");
  for (const CheckpointSettings& checkpoint : resolved.settings.checkpoints) {
    check_checkpoint(checkpoint, resolved.settings.block_bytes);
    const auto& stores = resolved.settings.stores;
    expect(std::ranges::any_of(stores,
                               [&](const StoreSettings& s) { return s.path == checkpoint.store; }),
           "a checkpoint line has a store");
  }
}

}  // namespace

void check(Bytes input) {
  std::vector<std::string_view> parts = split(text_of(input), '\0');
  parts.resize(3);
  SettingSources sources;
  sources.process = {environment_of(parts[2]), "host", "/work", 1000};
  const Lookup variable = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = sources.process.environment.find(name);
    if (found == sources.process.environment.end()) return std::nullopt;
    return found->second;
  };
  sources.user_file = {"/work/.scrconf", entries_of(parts[0], "/work/.scrconf", variable)};
  sources.system_file = {"/etc/scr.conf", entries_of(parts[1], "/etc/scr.conf", variable)};
  const auto resolved = resolve(sources);
  if (resolved)
    check_settings(*resolved);
  else
    expect(resolved.error().code == Code::bad_setting && !resolved.error().text.empty(),
           "a refusal says why");
}

/// Every option of the table with its default, and the lines of the guide.
std::vector<Blob> seeds() {
  std::vector<Blob> files;
  std::string all = "# all\n";
  for (const Option& option : options()) {
    const std::string value(option.default_text.empty() ? "x" : option.default_text);
    files.push_back(blob_of(std::string(option.key) + "=" + value + "\n"));
    if (!option.default_text.empty() && !option.flags.not_in_files)
      all += std::string(option.key) + "=" + value + "\n";
  }
  const std::string lines =
      "STORE=/dev/shm GROUP=NODE COUNT=2 ENABLED=1 MKDIR=1 VIEW=PRIVATE\n"
      "STORE='/ssd/%n' GROUP=RACK COUNT=1 VIEW=GLOBAL\n"
      "CKPT=0 INTERVAL=1 GROUP=NODE STORE=/dev/shm TYPE=XOR SET_SIZE=8 BYPASS=0 OUTPUT=0\n"
      "CKPT=1 INTERVAL=2 STORE=\"/ssd/%n\" TYPE=RS SET_SIZE=16 SET_FAILURES=2\n"
      "CKPT=2 INTERVAL=4 TYPE=PARTNER COPIES=2 HOP=1 ENABLED=${ON}\n"
      "GROUPS=host RACK=r7 SWITCH=leaf3\n"
      "SCR_COPY_TYPE=FILE\n";
  files.push_back(blob_of(all));
  const std::string zero(1, '\0');
  files.push_back(blob_of(lines + zero + "SCR_CACHE_BASE=$WHERE\n" + zero +
                          "ON=1\nWHERE=/tmp\nSCR_DEBUG=1\nSLURM_JOB_ID=7\n"));
  return files;
}

}  // namespace cairn::fuzz
