#include "crfs/arguments.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>

#include "base/units.hpp"

namespace cairn {
namespace {

/// The options as typed, before they are checked.
struct Typed {
  MountOptions options;
  std::string pool, chunk, write;
  std::string mode = "auto";
  std::string close = "wait";
  bool icpp2011 = false;
  std::string mount_option;
};

std::string size_check(const std::string& text) {
  const auto size = parse_bytes(text);
  return size ? std::string() : size.error().text;
}

void add_pool(CLI::App& app, Typed& typed) {
  const CLI::Validator is_size(size_check, "");
  app.add_option("--pool", typed.pool, "Memory for data that crfs has not written yet; default 64M")
      ->type_name("SIZE")
      ->check(is_size);
  app.add_option("--chunk", typed.chunk,
                 "Size of the pieces of a file that are gathered, a power of two; default 1M")
      ->type_name("SIZE")
      ->check(is_size);
  app.add_option("--write", typed.write,
                 "Largest write: adjacent chunks are written together up to this size; default 16M")
      ->type_name("SIZE")
      ->check(is_size);
  app.add_option("--threads", typed.options.aggregate.io_threads,
                 "Number of threads that write; default 4")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--icpp2011", typed.icpp2011,
               "The values of the article that introduced CRFS: --pool 16M --chunk 128K --write "
               "128K --threads 4");
}

void add_semantics(CLI::App& app, Typed& typed) {
  app.add_option(
         "--mode", typed.mode,
         "direct: crfs gathers the program's writes; writeback: the kernel gathers them first; "
         "passthrough: the kernel writes without crfs, and nothing is gathered; auto, the default: "
         "passthrough if the backing directory is as fast as memory, else direct")
      ->type_name("MODE")
      ->check(CLI::IsMember({"auto", "direct", "writeback", "passthrough"}));
  app.add_option("--close", typed.close,
                 "wait, the default: close() waits until the backing directory has the data, and "
                 "returns write errors; async: it does not wait")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"wait", "async"}));
}

void add_reports(CLI::App& app, MountOptions& options) {
  app.add_flag("--stats", options.stats,
               "Print the numbers of writes, bytes and errors when the directory is unmounted");
  app.add_flag("--profile", options.profile,
               "Print a table of the sizes of writes when the directory is unmounted");
  app.add_option("--stats-file", options.stats_file, "Print both to this file instead of stderr")
      ->type_name("FILE");
  app.add_flag("--json", options.json, "Print JSON");
  app.add_flag("--discard", options.aggregate.discard,
               "Discard all data, to measure the cost of everything but the backing directory");
}

void add_mount(CLI::App& app, Typed& typed) {
  app.add_option("BACKING", typed.options.backing, "The directory that holds the files")
      ->required();
  app.add_option("MOUNTPOINT", typed.options.mountpoint,
                 "The directory under which programs see them")
      ->required();
  app.add_flag("-f,--foreground", typed.options.foreground, "Stay in the foreground");
  app.add_option(
         "-o", typed.mount_option,  // taken out before, by unfold()
         "Mount options, separated by commas: ro, allow_other, ...; also the options of this "
         "command: pool=64M,stats")
      ->type_name("OPTIONS");
  app.add_option("--fuse-threads", typed.options.fuse_threads,
                 "Maximum number of threads that serve programs; default 1024")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
}

void add_scr(CLI::App& app, MountOptions& options) {
  app.add_flag("--scr", options.scr,
               "Keep checkpoint files in the cache of the node: a step whose files are closed "
               "becomes a checkpoint of Cairn, and the newest one is there after the next mount");
  app.add_option("--checkpoint", options.patterns,
                 "A regular expression that matches checkpoint files, with the step as "
                 "(?<step>...); may be repeated. Default: SCR_CHECKPOINT_PATTERN")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  app.add_option("--nodes", options.nodes,
                 "The nodes that mount this directory with --scr at the same time, separated by "
                 "commas; default: only this node")
      ->type_name("NODES")
      ->delimiter(',')
      ->allow_extra_args(false);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

/// An option of /etc/fstab for mount(8) and the system, not for FUSE.
bool is_for_others(const std::string& option) {
  static const std::vector<std::string> names = {"defaults", "auto",   "noauto", "user",
                                                 "users",    "owner",  "group",  "nofail",
                                                 "_netdev",  "nouser", "nousers"};
  return option.starts_with("x-") || option.starts_with("X-") || option.starts_with("comment=") ||
         option.starts_with("user=") ||
         std::find(names.begin(), names.end(), option) != names.end();
}

/// Moves options of crfs out of -o, to the command line.
std::vector<std::string> unfold(const CLI::App& app, const std::vector<std::string>& words,
                                std::vector<std::string>& mount_options) {
  std::vector<std::string> unfolded;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool apart = words[i] == "-o" && i + 1 < words.size();
    if (!apart && !(words[i].starts_with("-o") && words[i].size() > 2)) {
      unfolded.push_back(words[i]);
      continue;
    }
    for (const std::string& option : split(apart ? words[++i] : words[i].substr(2))) {
      if (app.get_option_no_throw("--" + option.substr(0, option.find('='))) != nullptr)
        unfolded.push_back("--" + option);
      else if (!is_for_others(option))
        mount_options.push_back(option);
    }
  }
  return unfolded;
}

/// Removes the options that mount(8) passes to mount.crfs beside the two directories and -o: -s,
/// -f, -n, -v, -N namespace, -t type. Only -f has an effect, another one than in crfs: do
/// everything but mount.
std::vector<std::string> of_mount(const std::vector<std::string>& words, bool& fake) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-N" || word == "-t")
      ++i;
    else if (word == "-o" && i + 1 < words.size())
      kept.insert(kept.end(), {word, words[++i]});
    else if (word.size() > 1 && word[0] == '-' && word[1] != '-' &&
             word.find_first_not_of("sfnv", 1) == std::string::npos)
      fake = fake || word.find('f') != std::string::npos;
    else
      kept.push_back(word);
  }
  return kept;
}

std::uint64_t size_or(const std::string& text, std::uint64_t otherwise) {
  return text.empty() ? otherwise : *parse_bytes(text);
}

Status check(const MountOptions& options) {
  const AggregateOptions& aggregate = options.aggregate;
  const std::uint64_t chunk = aggregate.chunk_bytes;
  if (chunk < 4096 || (chunk & (chunk - 1)) != 0)
    return fail(Code::bad_argument, "--chunk {} is not a power of two of at least 4K: give one",
                format_bytes(chunk));
  if (chunk > aggregate.pool_bytes)
    return fail(Code::bad_argument, "--chunk {} does not fit in --pool {}: give a larger pool",
                format_bytes(chunk), format_bytes(aggregate.pool_bytes));
  if (aggregate.write_bytes < chunk)
    return fail(Code::bad_argument, "--write {} is less than --chunk {}: give at least as much",
                format_bytes(aggregate.write_bytes), format_bytes(chunk));
  if ((options.stats || options.profile) && !options.foreground && options.stats_file.empty())
    return fail(Code::bad_argument,
                "--stats and --profile cannot print in the background: give --stats-file, or -f");
  if (!options.stats && !options.profile && (options.json || !options.stats_file.empty()))
    return fail(Code::bad_argument,
                "--stats-file and --json only say how --stats and --profile are printed: give one "
                "of these too");
  if (options.profile && options.writeback())
    return fail(Code::bad_argument,
                "--profile with --mode writeback would show the kernel's writes, not the "
                "program's: give --mode direct");
  if (options.mode == Mode::passthrough && options.gathers_only())
    return fail(Code::bad_argument,
                "--mode passthrough cannot be combined with --close async, --profile, --discard or "
                "-o suid: give --mode direct");
  if (options.mode == Mode::passthrough && ::geteuid() != 0)
    return fail(Code::bad_argument,
                "--mode passthrough: Linux allows it to root only: give --mode direct");
  return {};
}

Status check_scr(const MountOptions& options) {
  const auto mounted_with = [&](const char* option) {
    const auto& all = options.mount_options;
    return std::find(all.begin(), all.end(), option) != all.end();
  };
  if (!options.scr && !(options.patterns.empty() && options.nodes.empty()))
    return fail(Code::bad_argument,
                "--checkpoint and --nodes say how --scr makes checkpoints: give --scr too");
  if (options.scr && (options.writeback() || options.aggregate.discard))
    return fail(Code::bad_argument,
                "--scr cannot be combined with --mode writeback, by which the kernel would keep "
                "data of closed files, nor with --discard: leave these out");
  if (options.scr && (mounted_with("allow_other") || mounted_with("suid")))
    return fail(Code::bad_argument,
                "--scr keeps files in a cache that belongs to one user: leave out -o allow_other "
                "and -o suid");
  return {};
}

Result<MountOptions> options_of(Typed& typed) {
  MountOptions& options = typed.options;
  AggregateOptions& aggregate = options.aggregate;
  for (const Mode mode : {Mode::direct, Mode::writeback, Mode::passthrough})
    if (typed.mode == name_of(mode)) options.mode = mode;
  if (typed.icpp2011) {
    if (options.mode == Mode::automatic) options.mode = Mode::direct;
    aggregate.pool_bytes = std::uint64_t{16} << 20;
    aggregate.chunk_bytes = aggregate.write_bytes = std::uint64_t{128} << 10;
  }
  aggregate.pool_bytes = size_or(typed.pool, aggregate.pool_bytes);
  aggregate.chunk_bytes = size_or(typed.chunk, aggregate.chunk_bytes);
  aggregate.write_bytes =
      size_or(typed.write, std::max(aggregate.write_bytes, aggregate.chunk_bytes));
  options.close_async = typed.close == "async";
  for (std::string* path : {&options.backing, &options.mountpoint, &options.stats_file})
    if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal();
  CAIRN_TRY(check(options));
  CAIRN_TRY(check_scr(options));
  return options;
}

}  // namespace

std::optional<MountOptions> parse_arguments(const std::string& called,
                                            std::vector<std::string> words, int& exit_code) {
  CLI::App app("Mount a directory so that many small writes to it become few large ones", "crfs");
  app.set_version_flag("-V,--version", "crfs " CAIRN_VERSION);
  app.footer(
      "Exit codes: 0 success; 1 not mounted, or (with -f) data of a file could not be written; 2 "
      "wrong usage.");
  Typed typed;
  add_mount(app, typed);
  add_pool(app, typed);
  add_semantics(app, typed);
  add_reports(app, typed.options);
  add_scr(app, typed.options);
  bool fake = false;
  if (called == "mount.crfs") words = of_mount(words, fake);
  words = unfold(app, words, typed.options.mount_options);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : 2;
    return {};
  }
  auto options = options_of(typed);
  exit_code = options ? 0 : 2;
  if (!options) std::cerr << "crfs: " << options.error().text << "\n";
  if (!options || fake) return {};
  return *options;
}

}  // namespace cairn
