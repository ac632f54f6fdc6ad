#include "interpose/moving.hpp"

#include <dirent.h>
#include <limits.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "interpose/system_calls.hpp"

namespace cairn::interpose {
namespace {

constexpr std::size_t piece_bytes =
    16 << 20;  // after each, it is checked whether a process wants to write

/// Whether this process has that file open for writing.
bool writes_here(const struct stat& file) {
  DIR* const all = opendir("/proc/self/fd");
  if (all == nullptr) return true;
  bool found = false;
  while (const dirent* const entry = readdir(all)) {
    const int number = std::atoi(entry->d_name);
    struct stat state;
    if (entry->d_name[0] == '.' || kernel::stat_of(number, state) != 0) continue;
    if (state.st_dev != file.st_dev || state.st_ino != file.st_ino) continue;
    const long flags = syscall(SYS_fcntl, number, F_GETFL);
    found = found || (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && (flags & O_PATH) == 0);
  }
  closedir(all);
  return found;
}

/// Shows whether a process writes to a file, as long as it lives: a read lease (docs/adr/0026).
/// Where the file system has none, only writers of this process are found.
class NoWriters {
 public:
  explicit NoWriters(int descriptor) : descriptor_(descriptor) {
    syscall(SYS_fcntl, descriptor_, F_SETSIG, SIGURG);
    has_lease_ = syscall(SYS_fcntl, descriptor_, F_SETLEASE, F_RDLCK) == 0;
    struct stat state;
    found_writer_ = !has_lease_ && (errno == EAGAIN || kernel::stat_of(descriptor, state) != 0 ||
                                    writes_here(state));
  }
  NoWriters(const NoWriters&) = delete;
  NoWriters& operator=(const NoWriters&) = delete;
  ~NoWriters() {
    if (has_lease_) syscall(SYS_fcntl, descriptor_, F_SETLEASE, F_UNLCK);
  }

  bool holds() const {
    return !found_writer_ &&
           (!has_lease_ || syscall(SYS_fcntl, descriptor_, F_GETLEASE) == F_RDLCK);
  }

 private:
  int descriptor_;
  bool has_lease_ = false;
  bool found_writer_ = false;
};

/// Copies what lies from `begin` to `end`.
int copy_range(int from, int to, off_t begin, off_t end, const NoWriters& writers) {
  if (syscall(SYS_lseek, to, begin, SEEK_SET) < 0) return errno;
  off_t at = begin;
  while (at < end) {
    if (!writers.holds()) return EBUSY;
    const auto size = static_cast<std::size_t>(std::min<off_t>(end - at, piece_bytes));
    const long copied = syscall(SYS_sendfile, to, from, &at, size);
    if (copied < 0 && errno != EINTR) return errno;
    if (copied == 0) return EIO;  // the file has become shorter
  }
  return 0;
}

/// Holes stay holes.
int copy_bytes(int from, int to, off_t size, const NoWriters& writers) {
  off_t at = 0;
  while (at < size) {
    const off_t data = syscall(SYS_lseek, from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // only a hole is left
    const off_t begin = data < 0 ? at : data;
    const off_t hole =
        data < 0 ? size : static_cast<off_t>(syscall(SYS_lseek, from, begin, SEEK_HOLE));
    const off_t end = hole < 0 ? size : std::min(hole, size);
    const int error = copy_range(from, to, begin, end, writers);
    if (error != 0) return error;
    at = end;
  }
  return syscall(SYS_ftruncate, to, size) == 0 ? 0 : errno;
}

int copy_rights(const struct stat& state, int to) {
  // Only root may give files away; for others the group may be one that they do not have.
  if (syscall(SYS_fchown, to, state.st_uid, state.st_gid) != 0 && errno != EPERM && errno != EINVAL)
    return errno;
  return syscall(SYS_fchmod, to, state.st_mode & 07777) == 0 ? 0 : errno;
}

int copy_attributes(const struct stat& state, int to) {
  if (const int error = copy_rights(state, to); error != 0) return error;
  const std::array<timespec, 2> times = {state.st_atim, state.st_mtim};
  return syscall(SYS_utimensat, to, nullptr, times.data(), 0) == 0 ? 0 : errno;
}

/// A name that no other process uses in that directory.
std::string temporary_name() {
  static std::atomic<unsigned> count{0};
  return ".cairn.wrap." + std::to_string(getpid()) + "." + std::to_string(count.fetch_add(1)) +
         ".tmp";
}

int fill(int from, int to, const struct stat& state, const NoWriters& writers,
         Durability durability) {
  int error = copy_bytes(from, to, state.st_size, writers);
  if (error == 0) error = copy_attributes(state, to);
  if (error == 0 && durability == Durability::synced && syscall(SYS_fsync, to) != 0) error = errno;
  return error;
}

/// Copies the bytes of `place`, which nothing may write to meanwhile.
int copy_file(const char* place, const struct stat& state, int to) {
  const Descriptor source(
      kernel::open_at(AT_FDCWD, place, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat opened;
  if (!source.is_open() || kernel::stat_of(source.number(), opened) != 0) return errno;
  if (opened.st_dev != state.st_dev || opened.st_ino != state.st_ino) return EBUSY;
  const NoWriters writers(source.number());
  if (!writers.holds()) return EBUSY;
  const int error = fill(source.number(), to, opened, writers, Durability::not_synced);
  return error == 0 && !writers.holds() ? EBUSY : error;
}

/// 0 while the path names this file. ENOENT after the program has deleted it or given it another
/// name, EBUSY after it has put another file there: a lease shows none of that.
int check_name(const char* path, const struct stat& file) {
  struct stat now;
  if (kernel::stat_at(AT_FDCWD, path, now) != 0) return errno;
  return now.st_dev == file.st_dev && now.st_ino == file.st_ino ? 0 : EBUSY;
}

/// Exclusive until the result is closed. Not open if it fails, with errno.
int take_lock(const std::string& path) {
  const int lock =
      kernel::open_at(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return lock;
  while (syscall(SYS_flock, lock, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    kernel::close(lock);
    errno = error;
    return -1;
  }
  return lock;
}

/// The entries of a directory without "." and "..", as names and whether they are directories.
std::vector<std::pair<std::string, bool>> entries_of(const std::string& directory) {
  std::vector<std::pair<std::string, bool>> found;
  DIR* const all = opendir(directory.c_str());
  if (all == nullptr) return found;
  while (const dirent* const entry = readdir(all)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat state;
    if (kernel::stat_at(dirfd(all), name.c_str(), state) == 0)
      found.emplace_back(name, S_ISDIR(state.st_mode));
  }
  closedir(all);
  return found;
}

bool is_newer(const timespec& one, const timespec& other) {
  return one.tv_sec != other.tv_sec ? one.tv_sec > other.tv_sec : one.tv_nsec > other.tv_nsec;
}

/// The name for a file of the cache: its own, or another if a program that was not wrapped has
/// written a newer file.
std::string name_beside(const std::string& path, int directory, const std::string& name) {
  struct stat cached;
  struct stat plain;
  const bool keeps_plain = kernel::stat_at(directory, name.c_str(), plain) == 0 &&
                           kernel::stat_at(AT_FDCWD, path.c_str(), cached) == 0 &&
                           is_newer(plain.st_mtim, cached.st_ctim);
  return keeps_plain ? name + ".cairn-older" : name;
}

bool is_there(const std::string& path) {
  struct stat state;
  return kernel::stat_at(AT_FDCWD, path.c_str(), state) == 0;
}

void settle_one(const std::string& path, const std::string& destination, const std::string& name,
                Moved& moved) {
  make_parents("", (destination + "/" + name).c_str());
  const Descriptor directory(
      kernel::open_at(AT_FDCWD, destination.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int error = directory.is_open() ? 0 : errno;
  const std::string to_name = error == 0 ? name_beside(path, directory.number(), name) : name;
  if (error == 0)
    error = move_file(path.c_str(), directory.number(), to_name.c_str(), Durability::synced);
  if (error == 0) {
    ++moved.files;
    moved.older += to_name == name ? 0 : 1;
  } else if (error == EBUSY) {
    ++moved.busy;
  } else if (error != ENOENT || is_there(path)) {  // the program may have deleted it meanwhile
    ++moved.failed;
    if (moved.first_error.empty())
      moved.first_error = destination + "/" + name + ": " + std::strerror(error);
  }
}

void visit_below(const std::string& directory, const std::string& relative,
                 const std::function<void(const std::string& name)>& visit) {
  for (const auto& [name, is_directory] : entries_of(directory)) {
    const std::string below = relative.empty() ? name : relative + "/" + name;
    if (is_directory)
      visit_below(directory + "/" + name, below, visit);
    else
      visit(below);
  }
}

}  // namespace

int move_file(const char* from, int to_directory, const char* to_name, Durability durability,
              std::mutex* names) {
  const Descriptor source(
      kernel::open_at(AT_FDCWD, from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat state;
  if (!source.is_open() || kernel::stat_of(source.number(), state) != 0) return errno;
  if (!S_ISREG(state.st_mode)) return EINVAL;
  const NoWriters writers(source.number());
  if (!writers.holds()) return EBUSY;
  const std::string temporary = temporary_name();
  const Descriptor target(kernel::open_at(
      to_directory, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!target.is_open()) return errno;
  int error = fill(source.number(), target.number(), state, writers, durability);
  const auto lock = names == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*names);
  if (error == 0 && !writers.holds()) error = EBUSY;
  if (error == 0) error = check_name(from, state);
  if (error == 0 && kernel::rename_at(to_directory, temporary.c_str(), to_directory, to_name) != 0)
    error = errno;
  if (error != 0) {
    kernel::unlink_at(to_directory, temporary.c_str());
    return error;
  }
  if (durability == Durability::synced) syscall(SYS_fsync, to_directory);
  // The copy stays, as another thread may have moved the file too, and may have only this one left.
  if (const int late = check_name(from, state); late != 0) return late;
  // A process that waits for the lease gets a deleted file, notices it, and opens the new one
  // (wrap_open.cpp).
  return kernel::unlink_at(AT_FDCWD, from) == 0 ? 0 : errno;
}

int make_own(const std::string& cache, const char* place, Content content) {
  const Descriptor lock(take_lock(cache + "/own.lock"));
  if (!lock.is_open()) return errno;
  struct stat state;
  if (kernel::stat_at(AT_FDCWD, place, state) != 0) return errno;
  // Only now: another process may have done it while this one waited.
  if (!S_ISREG(state.st_mode) || state.st_nlink < 2) return 0;
  // With the lock held, what is there is of a process that was killed.
  const std::string unfinished = cache + "/own.tmp";
  kernel::unlink_at(AT_FDCWD, unfinished.c_str());
  const Descriptor target(kernel::open_at(
      AT_FDCWD, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!target.is_open()) return errno;
  int error = content == Content::kept ? copy_file(place, state, target.number())
                                       : copy_rights(state, target.number());
  if (error == 0 && kernel::rename_at(AT_FDCWD, unfinished.c_str(), AT_FDCWD, place) != 0)
    error = errno;
  if (error != 0) kernel::unlink_at(AT_FDCWD, unfinished.c_str());
  return error;
}

int make_parents(std::string_view root, const char* path) {
  std::string parent(path);
  for (std::size_t slash = parent.find('/', root.size() + 1); slash != std::string::npos;
       slash = parent.find('/', slash + 1)) {
    parent[slash] = '\0';
    const bool is_made =
        kernel::make_directory_at(AT_FDCWD, parent.c_str(), root.empty() ? 0777 : 0700) == 0;
    const int error = errno;
    parent[slash] = '/';
    if (!is_made && error != EEXIST) return error;
  }
  return 0;
}

bool holds_files(const std::string& directory) {
  for (const auto& [name, is_directory] : entries_of(directory))
    if (!is_directory || holds_files(directory + "/" + name)) return true;
  return false;
}

void remove_empty_directories(const std::string& directory, bool also_itself) {
  for (const auto& [name, is_directory] : entries_of(directory))
    if (is_directory) remove_empty_directories(directory + "/" + name, true);
  if (also_itself) kernel::unlink_at(AT_FDCWD, directory.c_str(), AT_REMOVEDIR);
}

void for_each_file(const std::string& directory,
                   const std::function<void(const std::string& name)>& visit) {
  visit_below(directory, "", visit);
}

Moved settle(const std::string& directory, const std::string& destination,
             const std::function<bool(std::string_view)>& is_wanted) {
  Moved moved;
  for_each_file(directory, [&](const std::string& name) {
    if (is_wanted && !is_wanted(name)) return;
    const std::string plain = destination + "/" + name;
    const std::size_t slash = plain.rfind('/');
    settle_one(directory + "/" + name, plain.substr(0, slash), plain.substr(slash + 1), moved);
  });
  return moved;
}

}  // namespace cairn::interpose
