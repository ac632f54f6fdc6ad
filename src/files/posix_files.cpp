#include "files/posix_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "files/descriptor.hpp"
#include "files/posix_file.hpp"
#include "files/process_identity.hpp"
#include "files/writer_of.hpp"

namespace cairn {
namespace {

std::int64_t ns_of(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * ns_per_s + time.tv_nsec;
}

/// The Status of a system call that returns 0 on success.
Status outcome(int returned, std::string_view action, const std::string& path) {
  if (returned != 0) return tl::unexpected<Error>(errno_error(errno, action, path));
  return {};
}

/// The Status of a removal, which succeeds if the path does not exist.
Status removal(int returned, const std::string& path) {
  if (returned == 0) return {};
  Error error = path_error(errno, "remove", path);
  if (error.code == Code::not_found) return {};
  return tl::unexpected<Error>(std::move(error));
}

/// syncfs returns errors of earlier writes since Linux 5.8; older kernels return success.
bool syncfs_reports_errors() {
  constexpr std::pair first_that_does = {5, 8};
  struct utsname system = {};
  std::pair version = {0, 0};
  return ::uname(&system) == 0 &&
         std::sscanf(system.release, "%d.%d", &version.first, &version.second) == 2 &&
         version >= first_that_does;
}

struct CloseFolder {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

/// Null at the end (errno is 0), and on an error (errno is not 0).
const dirent* next_in(DIR* directory) {
  const dirent* entry = nullptr;
  uninterrupted([&] {
    errno = 0;
    entry = ::readdir(directory);
    return errno == 0 ? 0 : -1;
  });
  return entry;
}

Result<std::vector<std::string>> names_in(DIR* directory, const std::string& path) {
  std::vector<std::string> names;
  while (const dirent* entry = next_in(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return tl::unexpected<Error>(errno_error(errno, "list", path));
  std::sort(names.begin(), names.end());
  return names;
}

/// flock belongs to the open file: two locks of one process exclude each other too, and the kernel
/// releases the lock when the last descriptor is closed in any way.
class PosixLock final : public FileLock {
 public:
  explicit PosixLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  Descriptor descriptor_;
};

class PosixFolder final : public Folder {
 public:
  PosixFolder(Descriptor handle, std::string path)
      : handle_(std::move(handle)), path_(std::move(path)) {}

  Result<Blob> read_file(const std::string& name, std::uint64_t limit_bytes) override {
    const std::string path = path_ + "/" + name;
    const Base base = {handle_.number(), name.c_str()};
    CAIRN_ASSIGN(OpenFile file, open_regular(path, O_RDONLY, "open", 0, base));
    return read_whole(*make_posix_reader(std::move(file), path), path, limit_bytes);
  }

 private:
  const Descriptor handle_;
  const std::string path_;
};

/// Linux reports to each open file the errors since it was opened. A file opened only for the sync
/// would miss errors that another sync has received.
class PosixFileSystemSync final : public FileSystemSync {
 public:
  PosixFileSystemSync(Descriptor directory, std::string path)
      : directory_(std::move(directory)), path_(std::move(path)) {}

  Status sync() override {
    return outcome(uninterrupted([&] { return ::syncfs(directory_.number()); }),
                   "sync the file system of", path_);
  }

 private:
  const Descriptor directory_;
  const std::string path_;
};

class PosixFiles final : public Files {
 public:
  Result<std::unique_ptr<File>> open(const std::string& path) override {
    CAIRN_ASSIGN(OpenFile file, open_regular(path, O_RDONLY, "open"));
    return make_posix_reader(std::move(file), path);
  }

  Result<std::unique_ptr<File>> open_for_update(const std::string& path) override {
    CAIRN_ASSIGN(OpenFile file, open_regular(path, O_RDWR, "open"));
    return make_posix_file(std::move(file), path);
  }

  Result<std::unique_ptr<File>> create(const std::string& path, std::uint32_t mode) override {
    CAIRN_ASSIGN(OpenFile file, create_unlinked(path, mode));
    const bool is_empty = file.status.st_size == 0;
    if (!is_empty && uninterrupted([&] { return ::ftruncate(file.descriptor.number(), 0); }) != 0)
      return tl::unexpected<Error>(errno_error(errno, "create", path));
    return make_posix_file(std::move(file), path);
  }

  Result<std::unique_ptr<File>> create_or_open(const std::string& path,
                                               std::uint32_t mode) override {
    CAIRN_ASSIGN(OpenFile file, create_unlinked(path, mode));
    return make_posix_file(std::move(file), path);
  }

  Status append(const std::string& path, Bytes data, std::uint32_t mode) override {
    CAIRN_ASSIGN(const OpenFile file,
                 open_regular(path, O_WRONLY | O_APPEND | O_CREAT, "append to", mode));
    return write_on(path, 0, data, [&](Bytes part, std::uint64_t) {
      return ::write(file.descriptor.number(), part.data(), part.size());
    });
  }

  Result<std::unique_ptr<View>> view(const std::string& path) override {
    CAIRN_ASSIGN(const OpenFile file, open_regular(path, O_RDONLY, "open"));
    return make_posix_view(file, path);
  }

  Result<FileInfo> info(const std::string& path) override {
    struct stat status = {};
    CAIRN_TRY(outcome(look_at(path, status), "inspect", path));
    FileInfo info;
    info.kind = kind_of(status.st_mode);
    info.size = static_cast<std::uint64_t>(status.st_size);
    info.mode = status.st_mode & 07777U;
    info.owner = status.st_uid;
    info.group = status.st_gid;
    info.times = {ns_of(status.st_atim), ns_of(status.st_mtim)};
    info.change_ns = ns_of(status.st_ctim);
    info.id = {status.st_dev, status.st_ino};
    info.names = status.st_nlink;
    return info;
  }

  Result<Writer> find_writer(const std::string& path) override {
    CAIRN_ASSIGN(const OpenFile file, open_regular(path, O_RDONLY, "open"));
    return writer_of(file, path);
  }

  Result<std::vector<std::string>> list(const std::string& directory) override {
    CAIRN_ASSIGN(Descriptor descriptor, open_unfollowed(directory, O_RDONLY | O_DIRECTORY, "list"));
    const std::unique_ptr<DIR, CloseFolder> stream(::fdopendir(descriptor.number()));
    if (stream == nullptr) return tl::unexpected<Error>(errno_error(errno, "list", directory));
    descriptor.release();  // the stream owns it now
    return names_in(stream.get(), directory);
  }

  Result<std::unique_ptr<Folder>> open_folder(const std::string& path) override {
    CAIRN_ASSIGN(Descriptor handle, open_handle(path, "open"));
    return std::make_unique<PosixFolder>(std::move(handle), path);
  }

  Status make_folder(const std::string& path, std::uint32_t mode) override {
    if (uninterrupted([&] { return ::mkdir(path.c_str(), mode); }) == 0) return {};
    const int why = errno;
    // Checked after every error: a read-only or automounted parent need not return EEXIST.
    struct stat status = {};
    if (look_at(path, status) == 0 && S_ISDIR(status.st_mode)) return {};
    return tl::unexpected<Error>(path_error(why, "create directory", path));
  }

  Result<bool> make_new_folder(const std::string& path, std::uint32_t mode) override {
    if (uninterrupted([&] { return ::mkdir(path.c_str(), mode); }) == 0) return true;
    if (errno == EEXIST) return false;
    return tl::unexpected<Error>(path_error(errno, "create directory", path));
  }

  Status rename(const std::string& from, const std::string& to) override {
    const int renamed = uninterrupted([&] { return ::rename(from.c_str(), to.c_str()); });
    return outcome(renamed, "rename", from + " to " + to);
  }

  Status link(const std::string& from, const std::string& to) override {
    const int linked = uninterrupted([&] { return ::link(from.c_str(), to.c_str()); });
    return outcome(linked, "link", from + " to " + to);
  }

  Status remove_file(const std::string& path) override {
    return removal(uninterrupted([&] { return ::unlink(path.c_str()); }), path);
  }

  Status remove_folder(const std::string& path) override {
    return removal(uninterrupted([&] { return ::rmdir(path.c_str()); }), path);
  }

  Status set_attributes(const std::string& path, std::uint32_t mode,
                        const FileTimes& times) override {
    constexpr std::string_view action = "set the attributes of";
    CAIRN_ASSIGN(const Descriptor handle, open_handle(path, action));
    // Through /proc, as older kernels and C libraries have no chmod that does not follow links. So
    // both calls act on the same file, even if it is not readable.
    const std::string self = fmt::format("/proc/self/fd/{}", handle.number());
    const std::array<timespec, 2> both = timespecs_of(times);
    const int changed = uninterrupted([&] { return ::chmod(self.c_str(), mode); });
    CAIRN_TRY(outcome(changed, action, path));
    const int dated =
        uninterrupted([&] { return ::utimensat(AT_FDCWD, self.c_str(), both.data(), 0); });
    return outcome(dated, action, path);
  }

  Status sync_folder(const std::string& directory) override {
    CAIRN_ASSIGN(const Descriptor descriptor,
                 open_unfollowed(directory, O_RDONLY | O_DIRECTORY, "sync directory"));
    const int synced = uninterrupted([&] { return ::fsync(descriptor.number()); });
    // EINVAL: this file system has no sync of directories, so nothing more can be done.
    return synced != 0 && errno == EINVAL ? Status{} : outcome(synced, "sync directory", directory);
  }

  Result<std::unique_ptr<FileSystemSync>> open_file_system(const std::string& directory) override {
    CAIRN_ASSIGN(Descriptor descriptor,
                 open_unfollowed(directory, O_RDONLY | O_DIRECTORY, "open the file system of"));
    CAIRN_ASSIGN(const std::uint64_t type, file_system_of(descriptor, directory));
    if (!is_local_disk_file_system(type) || !syncfs_reports_errors()) return nullptr;
    return std::make_unique<PosixFileSystemSync>(std::move(descriptor), directory);
  }

  Result<Space> space(const std::string& path) override {
    constexpr std::string_view action = "find the free space at";
    CAIRN_ASSIGN(const Descriptor handle, open_handle(path, action));
    struct statvfs space = {};
    CAIRN_TRY(
        outcome(uninterrupted([&] { return ::fstatvfs(handle.number(), &space); }), action, path));
    CAIRN_ASSIGN(const struct stat status, stat_of(handle, action, path));
    return Space{std::uint64_t{space.f_bavail} * space.f_frsize,
                 std::uint64_t{space.f_blocks} * space.f_frsize, status.st_dev};
  }

  Result<bool> is_memory(const std::string& path) override {
    CAIRN_ASSIGN(const Descriptor handle, open_handle(path, "inspect the file system of"));
    CAIRN_ASSIGN(const std::uint64_t type, file_system_of(handle, path));
    return is_memory_file_system(type);
  }

  Status may_change(const std::string& directory) override {
    CAIRN_ASSIGN(const Descriptor handle, open_handle(directory, "create files in"));
    const int allowed = ::faccessat(handle.number(), ".", W_OK | X_OK, AT_EACCESS);
    return outcome(allowed, "create files in", directory);
  }

  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    CAIRN_ASSIGN(OpenFile file, open_regular(path, O_RDWR | O_CREAT, "lock", 0666));
    const int locked =
        uninterrupted([&] { return ::flock(file.descriptor.number(), LOCK_EX | LOCK_NB); });
    if (locked != 0 && errno == EWOULDBLOCK)
      return fail(Code::busy, "cannot lock {}: another process holds it; wait until it has ended",
                  path);
    CAIRN_TRY(outcome(locked, "lock", path));
    return std::make_unique<PosixLock>(std::move(file.descriptor));
  }

  std::uint32_t effective_user() override { return ::geteuid(); }
  std::string boot() override { return this_boot(); }

 private:
  /// Opens or creates a file that has no other name.
  Result<OpenFile> create_unlinked(const std::string& path, std::uint32_t mode) {
    CAIRN_ASSIGN(OpenFile file, open_regular(path, O_RDWR | O_CREAT, "create", mode));
    if (file.status.st_nlink <= 1) return file;
    CAIRN_TRY(remove_file(path));
    return open_regular(path, O_RDWR | O_CREAT | O_EXCL, "create", mode);
  }
};

}  // namespace

std::unique_ptr<Files> make_posix_files() { return std::make_unique<PosixFiles>(); }

}  // namespace cairn
