#include "interpose/process.hpp"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/statfs.h>
#include <sys/utsname.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "interpose/listings.hpp"
#include "interpose/moving.hpp"
#include "interpose/next_call.hpp"
#include "interpose/system_calls.hpp"

namespace cairn::interpose {
namespace {

// A preloaded library has one state for the process: the wrapped calls have no argument that could
// carry it.
std::atomic<Process*> the_process{nullptr};
std::atomic<bool> is_started{false};

constexpr const char* open_at_end = "/open_at_end/";
// Marks in the cache; python/cairn/wrapping.py knows them. A program with MPI has had this cache:
// files with a second name are parts of its checkpoints. And it has not finished: its next run
// decides what becomes of the files.
constexpr const char* any_job = "/job";
constexpr const char* unfinished_job = "/job.unfinished";

std::string text_of(const char* name) {
  const char* const value = getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// The rank as the launchers give it to their processes, empty if none did.
std::string rank_of_environment() {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "FLUX_TASK_RANK"})
    if (const std::string rank = text_of(name); !rank.empty()) return rank;
  return {};
}

/// Calls `take` with each line.
template <class Take>
void for_each_line(const std::string& text, const Take& take) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) take(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

/// %n is the name of the node, as in the settings of Cairn.
std::string with_node_name(std::string path) {
  const std::size_t at = path.find("%n");
  if (at == std::string::npos) return path;
  std::string node = text_of("SCR_NODE_NAME");
  utsname host;
  if (node.empty() && uname(&host) == 0) node = host.nodename;
  return path.replace(at, 2, node);
}

bool is_private_directory(const std::string& path) {
  struct stat state;
  return kernel::stat_at(AT_FDCWD, path.c_str(), state) == 0 && S_ISDIR(state.st_mode) &&
         state.st_uid == geteuid() && (state.st_mode & 022) == 0;
}

void begin() {
  const KeptErrno kept;
  resolve_first_calls();
  is_started.store(true, std::memory_order_release);
  try {
    // It is never deleted: threads may still be in a call while the process ends.
    the_process.store(Process::make(), std::memory_order_release);
  } catch (...) {
    // No memory: the files stay in their plain places.
  }
}

void before_fork() {
  listings().lock();
  if (Process* const here = process()) here->lock_for_child();
}

void in_parent() {
  if (Process* const here = process()) here->release_lock_of_child();
  listings().unlock();
}

void in_child() {
  listings().unlock();
  if (Process* const here = process()) here->adopt_child();
}

__attribute__((constructor)) void initialise() {
  begin();
  if (process() != nullptr) pthread_atfork(before_fork, in_parent, in_child);
}

__attribute__((destructor)) void finish() {
  const KeptErrno kept;
  try {
    if (Process* const here = process()) here->end();
  } catch (...) {
    // The files stay in the cache; `cairn wrap` moves them.
  }
}

}  // namespace

Process* process() { return the_process.load(std::memory_order_acquire); }
void stop_redirecting() { the_process.store(nullptr, std::memory_order_release); }
bool has_started() { return is_started.load(std::memory_order_acquire); }

std::string Process::configure() {
  for_each_line(text_of("CAIRN_WRAP_PREFIX"),
                [&](const std::string& path) { rules_.add_prefix(path); });
  if (!rules_.has_prefix()) return "CAIRN_WRAP_PREFIX names no directory";
  std::string error;
  for_each_line(text_of("CAIRN_WRAP_PATTERNS"), [&](const std::string& pattern) {
    if (error.empty()) error = rules_.patterns.add(pattern);
  });
  if (error.empty() && rules_.patterns.empty()) {
    const std::string token = text_of("SCR_CHECKPOINT_PATTERN_TOKEN");
    error =
        rules_.patterns.add_of_scr(text_of("SCR_CHECKPOINT_PATTERN"), token.empty() ? "," : token,
                                   rank_ == "-" ? 0 : std::atoi(rank_.c_str()));
  }
  if (!error.empty() || is_dry_run()) return error;
  cache_ = with_node_name(text_of("CAIRN_WRAP_CACHE"));
  files_ = cache_ + "/files";
  std::string_view relative;
  if (cache_.empty() || cache_[0] != '/') return "CAIRN_WRAP_CACHE names no absolute path";
  if (rules_.is_below(cache_, relative))
    return "the cache " + cache_ + " is inside of the prefix directory";
  if (const int made = make_parents("/", (files_ + "/").c_str()); made != 0)
    return "cannot create the cache " + files_ + ": " + std::strerror(made);
  if (!is_private_directory(cache_) || !is_private_directory(files_))
    return "the cache " + cache_ + " belongs to another user, or others may write to it";
  if (!take_lock()) return "cannot lock the cache " + cache_;
  note_prefix();
  return "";
}

/// For `cairn clean`: the name of the cache does not show whose files it has. All processes write
/// the same.
void Process::note_prefix() {
  const std::string note = cache_ + "/prefix";
  struct stat state;
  if (kernel::stat_at(AT_FDCWD, note.c_str(), state) == 0 && state.st_size > 0) return;
  const std::string_view prefix = rules_.prefix();
  const int file =
      kernel::open_at(AT_FDCWD, note.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  kernel::write(file, prefix.data(), prefix.size());
  kernel::close(file);
}

Process* Process::make() {
  // A program with more rights than its user does nothing that the user's environment asks for.
  if (getauxval(AT_SECURE) != 0) return nullptr;
  const bool is_wanted =
      getenv("CAIRN_WRAP_PREFIX") != nullptr || getenv("CAIRN_WRAP_CACHE") != nullptr;
  if (!is_wanted) return nullptr;
  auto* const made = new Process;
  made->watch_stderr();
  made->id_ = getpid();
  if (const std::string rank = rank_of_environment(); !rank.empty()) made->rank_ = rank;
  made->log_directory_ = text_of("CAIRN_WRAP_LOG");
  if (const std::string percent = text_of("CAIRN_WRAP_FREE_PERCENT"); !percent.empty())
    made->free_percent_ = std::strtoul(percent.c_str(), nullptr, 10);
  const std::string error = made->configure();
  if (error.empty()) return made;
  std::atomic<bool> once{false};
  made->say(once, nullptr, (error + "; all files stay in their plain places").c_str());
  delete made;
  return nullptr;
}

bool Process::is_plain(int directory, const char* path) {
  if (is_dry_run()) return false;
  const std::string_view name(path);
  if (directory != AT_FDCWD && !name.starts_with('/')) return name.empty();
  PathBuffer<512> memory;
  PathText scratch = memory.text();
  const Kind kind = rules_.decide(name, working_directory_, scratch).kind;
  return kind == Kind::outside || kind == Kind::unmatched;
}

bool Process::has_room_for(std::string_view step) {
  if (!steps_taken_.take(step)) return false;
  struct statfs space;
  if (syscall(SYS_statfs, files_.c_str(), &space) != 0) return false;
  const unsigned long wanted = space.f_blocks / 100 * free_percent_;
  return space.f_blocks == 0 || space.f_bavail > wanted;
}

void Process::watch_stderr() { has_stderr_ = kernel::stat_of(STDERR_FILENO, stderr_) == 0; }

void Process::say(std::atomic<bool>& once, const char* path, const char* what) const {
  if (once.exchange(true)) return;
  const KeptErrno kept;
  struct stat now;
  // A program may have closed its stderr, and use that number for a file of its own.
  if (!has_stderr_ || kernel::stat_of(STDERR_FILENO, now) != 0) return;
  if (S_ISREG(now.st_mode) && (now.st_dev != stderr_.st_dev || now.st_ino != stderr_.st_ino))
    return;
  std::array<char, 1024> line;
  const int length = std::snprintf(line.data(), line.size(), "libcairn-interpose: %s%s%s\n",
                                   path == nullptr ? "" : path, path == nullptr ? "" : ": ", what);
  if (length > 0)
    kernel::write(STDERR_FILENO, line.data(),
                  std::min<std::size_t>(line.size() - 1, static_cast<std::size_t>(length)));
}

void Process::log(const char* line, std::size_t length) {
  int file = log_.load(std::memory_order_acquire);
  if (file < 0) {
    const std::string name = log_directory_ + "/" + rank_ + "." + std::to_string(getpid()) + ".log";
    file = at_high_number(
        kernel::open_at(AT_FDCWD, name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    int none = -1;
    if (file >= 0 && !log_.compare_exchange_strong(none, file)) {
      kernel::close(file);
      file = none;
    }
  }
  if (file >= 0) kernel::write(file, line, length);
}

/// A new descriptor that holds the lock. -1 on an error.
int Process::open_lock(int operation) const {
  const int lock = at_high_number(kernel::open_at(AT_FDCWD, (cache_ + "/lock").c_str(),
                                                  O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock < 0 || syscall(SYS_flock, lock, operation) == 0) return lock;
  kernel::close(lock);
  return -1;
}

bool Process::take_lock() {
  // While another process moves files of an earlier program, this waits: the program then finds
  // them in their places.
  lock_ = open_lock(LOCK_SH);
  return lock_ >= 0 && kernel::stat_of(lock_, lock_state_) == 0;
}

/// False after the program has closed all descriptors, and perhaps uses this number for a file of
/// its own.
bool Process::has_lock() const {
  struct stat state;
  return lock_ >= 0 && kernel::stat_of(lock_, state) == 0 && state.st_dev == lock_state_.st_dev &&
         state.st_ino == lock_state_.st_ino;
}

void Process::begin_job(const cairn_wrapped_calls* job) {
  set_mark(any_job);
  set_mark(unfinished_job);
  has_had_job_ = true;
  job_.store(job, std::memory_order_release);
}

const cairn_wrapped_calls* Process::end_job() { return job_.exchange(nullptr); }

/// Another process of the node may have taken the mark away before the rank was lost.
void Process::note_end_of_job(bool has_all_ranks) {
  if (has_all_ranks)
    kernel::unlink_at(AT_FDCWD, (cache_ + unfinished_job).c_str());
  else
    set_mark(unfinished_job);
}

void Process::set_mark(const char* mark) {
  kernel::close(
      kernel::open_at(AT_FDCWD, (cache_ + mark).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

bool Process::has_mark(const char* mark) const {
  struct stat state;
  return kernel::stat_at(AT_FDCWD, (cache_ + mark).c_str(), state) == 0;
}

bool Process::has_mark_of_job() const { return has_mark(any_job); }

/// A lock that parent and child share ends with the first who gives it back, so the parent's does
/// not count for the child.
void Process::lock_for_child() {
  const KeptErrno kept;
  if (!is_dry_run() && has_lock()) lock_of_child_ = open_lock(LOCK_SH | LOCK_NB);
}

void Process::release_lock_of_child() {
  const KeptErrno kept;
  if (const int lock = std::exchange(lock_of_child_, -1); lock >= 0) kernel::close(lock);
}

void Process::adopt_child() {
  const KeptErrno kept;
  job_ = nullptr;
  id_ = getpid();
  working_directory_.adopt_process();
  rules_.patterns.adopt_process();
  if (has_lock()) kernel::close(lock_);
  lock_ = std::exchange(lock_of_child_, -1);
  if (!is_dry_run() && (lock_ < 0 || kernel::stat_of(lock_, lock_state_) != 0)) take_lock();
  if (const int file = log_.exchange(-1); file >= 0) kernel::close(file);
}

/// It is a part of one too, by its second name: the next run finds it in the cache.
bool Process::is_in_checkpoint(std::string_view name) const {
  struct stat state;
  const std::string place = files_ + "/" + std::string(name);
  return kernel::stat_at(AT_FDCWD, place.c_str(), state) == 0 && state.st_nlink > 1;
}

/// The program has not closed them. They are complete when it is gone, and no job of the next run
/// may take them for files of a step that was not finished.
void Process::set_open_files_aside() {
  for_each_file(files_, [this](const std::string& name) {
    if (is_in_checkpoint(name)) return;
    const std::string aside = cache_ + open_at_end + name;
    if (make_parents(cache_, aside.c_str()) == 0)
      kernel::rename_at(AT_FDCWD, (files_ + "/" + name).c_str(), AT_FDCWD, aside.c_str());
  });
}

void Process::settle_files_set_aside() {
  settle(cache_ + open_at_end, std::string(rules_.prefix()));
}

void Process::end() {
  if (is_dry_run() || getpid() != id_.load()) return;
  if (const auto* const job = job_.exchange(nullptr)) {
    job->leave();
    return;  // the next run begins with the newest checkpoint, and not with files of half a step
  }
  // The last process on this node moves the files. Those that are still open are found by their
  // leases.
  if (!has_lock() || syscall(SYS_flock, lock_, LOCK_EX | LOCK_NB) != 0) return;
  if (has_mark(unfinished_job)) return;
  if (!has_had_job_) settle_files_set_aside();
  const bool keeps_checkpoints = has_mark(any_job);
  const Moved moved = settle(files_, std::string(rules_.prefix()), [&](std::string_view name) {
    return !keeps_checkpoints || !is_in_checkpoint(name);
  });
  if (has_had_job_ && moved.busy > 0) set_open_files_aside();
  remove_empty_directories(files_, false);
  syscall(SYS_flock, lock_, LOCK_SH);  // other programs need not wait until this process is gone
  std::atomic<bool> once{false};
  if (moved.failed > 0)
    say(once, moved.first_error.c_str(),
        ("cannot move this file to its place; " + std::to_string(moved.failed) + " files stay in " +
         files_ + ", until cairn wrap can move them")
            .c_str());
  once = false;
  if (moved.older > 0)
    say(once, nullptr,
        "a program that was not wrapped has written newer files; the older ones are beside them, "
        "as "
        "NAME.cairn-older");
}

}  // namespace cairn::interpose
