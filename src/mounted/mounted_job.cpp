#include "mounted/mounted_job.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <utility>

#include "base/checksum.hpp"
#include "comm/alone.hpp"
#include "config/gather.hpp"
#include "files/posix_files.hpp"
#include "mounted/checked_files.hpp"
#include "mounted/meeting.hpp"
#include "mounted/step_files.hpp"
#include "session/job_settings.hpp"
#include "wrapped/wrapped_process.hpp"

namespace cairn {
namespace {

/// A provisional checkpoint, and the one before it.
constexpr int checkpoints_kept = 2;

Result<std::unique_ptr<interpose::Patterns>> patterns_of(const MountOptions& options,
                                                         const ResolvedSettings& settings) {
  auto patterns = std::make_unique<interpose::Patterns>();
  std::string error;
  for (const std::string& expression : options.patterns)
    if (error.empty()) error = patterns->add(expression);
  if (options.patterns.empty())
    error =
        patterns->add_of_scr(settings.value_of("SCR_CHECKPOINT_PATTERN").value_or(""),
                             settings.value_of("SCR_CHECKPOINT_PATTERN_TOKEN").value_or(","), 0);
  if (!error.empty()) return fail(Code::bad_argument, "{}; correct --checkpoint", error);
  if (patterns->empty())
    return fail(Code::bad_argument,
                "no pattern says which files are checkpoint files: give --checkpoint, or set "
                "SCR_CHECKPOINT_PATTERN");
  return patterns;
}

/// The other mounts of a mount on several nodes.
class Neighbours {
 public:
  static Result<std::unique_ptr<Neighbours>> meet(const std::string& prefix,
                                                  const std::vector<std::string>& nodes) {
    auto met = std::make_unique<Neighbours>();
    if (nodes.size() < 2) {
      met->world_ = std::make_unique<Alone>();
      return met;
    }
    const std::string name = name_of_node();
    const auto mine = std::find(nodes.begin(), nodes.end(), name);
    if (mine == nodes.end())
      return fail(Code::bad_argument,
                  "this node is {}, which --nodes does not name; its name is the host name, or "
                  "SCR_NODE_NAME",
                  name);
    Meeting meeting{prefix + "/.cairn/mounts", nodes,
                    static_cast<std::size_t>(mine - nodes.begin())};
    PeerNetworkOptions peers;
    peers.place = name;
    CAIRN_ASSIGN(met->network_,
                 PeerNetwork::open(static_cast<int>(meeting.mine), static_cast<int>(nodes.size()),
                                   exchange_of(meeting), peers));
    met->world_ = met->network_->begin(1);
    met->world_->barrier();
    leave(meeting);
    return met;
  }

  Communicator& world() { return *world_; }
  /// By all.
  void part() {
    world_.reset();
    if (network_) (void)network_->close();
    network_.reset();
  }

 private:
  static std::string name_of_node() {
    const ProcessFacts facts = current_process();
    const auto chosen = facts.environment.find("SCR_NODE_NAME");
    return chosen == facts.environment.end() ? facts.host_name : chosen->second;
  }

  std::unique_ptr<PeerNetwork> network_;
  std::unique_ptr<Communicator> world_;
};

Result<ResolvedSettings> settings_of_mount(Communicator& world) {
  const auto files = make_posix_files();
  CAIRN_ASSIGN(ResolvedSettings resolved, resolve_job_settings(world, *files, {}));
  for (StoreSettings& store : resolved.settings.stores)
    store.count = std::max(store.count, checkpoints_kept);
  if (!resolved.settings.enable)
    return fail(Code::disabled,
                "SCR_ENABLE=0, so there would be no checkpoints: mount without "
                "--scr");
  return resolved;
}

/// The same for each mount of a directory, so that the next one finds what a killed one has left.
Result<std::string> make_cache(const Settings& settings, const std::string& prefix) {
  const auto store = std::find_if(settings.stores.begin(), settings.stores.end(),
                                  [](const StoreSettings& one) { return one.enabled; });
  if (store == settings.stores.end())
    return fail(Code::bad_setting, "no store is enabled, so there is no cache for --scr");
  const auto letters = std::as_bytes(std::span(prefix));
  const std::string cache =
      fmt::format("{}/{}/cairn-mount.{:08x}", expand_node(store->path, settings.node_name),
                  settings.user, crc32c(letters));
  if ((cache + "/").starts_with(prefix + "/"))
    return fail(Code::bad_setting,
                "the cache {} is inside of the backing directory: set SCR_CACHE_BASE to a "
                "directory of this node",
                cache);
  const std::string files = cache + "/files";
  int error = interpose::make_parents("/", (files + "/").c_str());
  if (error != 0)
    return fail(Code::io, "cannot create the cache {}: {}", files, std::strerror(error));
  struct stat state = {};
  if (::lstat(cache.c_str(), &state) != 0 || !S_ISDIR(state.st_mode) ||
      state.st_uid != ::geteuid() || (state.st_mode & 022) != 0)
    return fail(Code::bad_setting,
                "the cache {} belongs to another user, or others may write to it", cache);
  return cache;
}

/// Held as long as the mount lives.
Result<Descriptor> lock(const std::string& cache, const std::string& backing) {
  Descriptor file(
      ::open((cache + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.number() < 0)
    return fail(Code::io, "cannot open {}/lock: {}", cache, std::strerror(errno));
  if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0)
    return fail(Code::wrong_state,
                "another mount of {} with --scr is active on this node, or still writes its last "
                "checkpoint to {}: wait for its process to end, or use its mount point",
                backing, backing);
  return file;
}

class MountedJob final : public RedirectingJob {
 public:
  MountedJob(std::unique_ptr<interpose::Patterns> patterns, const StepFiles::Places& places,
             const Log& log, Descriptor lock)
      : log_(log),
        cache_(places.files()),
        patterns_(std::move(patterns)),
        checked_(places.prefix, log),
        files_(places, *patterns_, checked_),
        lock_(std::move(lock)) {}

  Redirection& redirection() override { return files_; }
  void finish() override {
    if (!process_) return;
    const bool has_said_where_files_are = !process_->finish();
    if (is_lost_) {
      // As after a kill: the next job finds out which steps are whole on all nodes.
      if (!has_said_where_files_are)
        log_.warning("as the mount of another node was lost, {}", fate_of_waiting_files(cache_));
      return;
    }
    if (const int left = files_.set_aside(); left > 0)
      log_.warning(
          "{} files could not be moved to the backing directory: a program has them open, or there "
          "is no room. They are in the cache of this node, and the next mount moves them",
          left);
  }

  Status start(Communicator& world, const Log& log, const ResolvedSettings& settings) {
    if (const std::string error = files_.settle_set_aside(); !error.empty())
      log.warning("a file that was open at the end of the last mount stays in the cache: {}",
                  error);
    WrappedProcess::Options options;
    options.redirected = cache_;
    options.move_to_plain_place = [this](const std::string& name) { return move_out(name); };
    options.find_step = [this](std::string_view name) { return files_.step_in(name); };
    options.job_lost = [this] {
      is_lost_ = true;
      files_.take_no_new_steps();
    };
    process_ = WrappedProcess::start(world, log, settings, std::move(options));
    if (!process_)
      return fail(Code::wrong_state,
                  "not mounted, because no step would become a checkpoint: the log of the first "
                  "node has the reason");
    files_.begin(process_->job());
    return {};
  }

 private:
  Status move_out(const std::string& name) {
    const int error = files_.move_to_plain_place(name);
    if (error == 0 || error == ENOENT) return {};  // a program may have removed it
    return fail(error == EBUSY ? Code::busy : Code::io, "cannot move {} to its plain place: {}",
                name, std::strerror(error));
  }

  const Log log_;
  const std::string cache_;
  const std::unique_ptr<interpose::Patterns> patterns_;
  CheckedFiles checked_;
  StepFiles files_;
  const Descriptor lock_;
  std::atomic<bool> is_lost_ = false;
  std::unique_ptr<WrappedProcess> process_;
};

unsigned long free_percent() {
  const char* const percent = ::getenv("CAIRN_WRAP_FREE_PERCENT");
  return percent == nullptr ? StepFiles::Places{}.free_percent : std::strtoul(percent, nullptr, 10);
}

}  // namespace

Result<std::unique_ptr<RedirectingJob>> start_mounted_job(const MountOptions& options,
                                                          const Log& log) {
  std::error_code failed;
  const std::string prefix = std::filesystem::canonical(options.backing, failed);
  if (failed)
    return fail(Code::io, "cannot use the backing directory {}: {}", options.backing,
                failed.message());
  // Before any thread is started. The backing directory is the prefix directory.
  ::setenv("SCR_PREFIX", prefix.c_str(), 1);
  try {
    CAIRN_ASSIGN(const auto neighbours, Neighbours::meet(prefix, options.nodes));
    Communicator& world = neighbours->world();
    CAIRN_ASSIGN(const ResolvedSettings settings, settings_of_mount(world));
    CAIRN_ASSIGN(auto patterns, patterns_of(options, settings));
    CAIRN_ASSIGN(const std::string cache, make_cache(settings.settings, prefix));
    CAIRN_ASSIGN(Descriptor locked, lock(cache, options.backing));
    std::ofstream(cache + "/prefix") << prefix;  // for `cairn clean`; without it the cache is kept
    const StepFiles::Places places{prefix, cache, free_percent()};
    auto job = std::make_unique<MountedJob>(std::move(patterns), places, log, std::move(locked));
    CAIRN_TRY(job->start(world, log, settings));
    neighbours->part();
    return std::unique_ptr<RedirectingJob>(std::move(job));
  } catch (const TransportFailed& failure) {
    return tl::unexpected(failure.error());
  }
}

}  // namespace cairn
