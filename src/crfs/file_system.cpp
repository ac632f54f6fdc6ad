#include "crfs/file_system.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace cairn {
namespace {

/// The mode has bits that a write by any user but root clears.
bool has_special_bits(const struct stat& status) {
  return S_ISREG(status.st_mode) && (status.st_mode & (S_ISUID | S_ISGID)) != 0;
}

/// The caller holds the lock of `inode`.
bool has_writer(const Inode& inode) {
  return std::any_of(inode.handles.begin(), inode.handles.end(),
                     [](const auto& handle) { return handle->writes(); });
}

int status_of(const Inode& inode, struct stat& status) {
  return ::fstatat(inode.path.number(), "", &status, AT_EMPTY_PATH) == 0 ? 0 : errno;
}

}  // namespace

FileSystem::FileSystem(const MountOptions& asked, Descriptor root)
    : options(asked),
      aggregator(asked.aggregate),
      inodes(std::move(root)),
      closing(inodes, unreported, asked.close_async ? asked.aggregate.io_threads : 0) {
  closing.lost = [this](const Inode& inode) {
    if (redirection != nullptr) redirection->note_loss(inode.path);
  };
}

FileSystem::~FileSystem() { drain(); }

int FileSystem::look_at(Inode& inode, struct stat& status, double& valid) {
  // Looked up before the backing file's attributes are read: if the file is closed meanwhile, these
  // may be older than its last bytes.
  const std::shared_ptr<SharedFile> file = inode.open_file();
  const bool settled = file == nullptr || file->settled();
  const int error = status_of(inode, status);
  if (error != 0) return error;
  valid = settled && !inode.may_be_mapped ? valid_s() : 0;
  if (has_special_bits(status)) inode.may_have_special_bits = true;
  if (redirection != nullptr && S_ISREG(status.st_mode) && status.st_nlink > 1 &&
      redirection->hides_names(inode.path))
    status.st_nlink = 1;
  if (file) file->show(status);
  status.st_ino = inodes.shown_number(inode);
  return 0;
}

int FileSystem::enter(Descriptor path, fuse_entry_param& entry) {
  entry = {};
  struct stat status = {};
  if (::fstatat(path.number(), "", &status, AT_EMPTY_PATH) != 0) return errno;
  Inode& inode = inodes.look_up(std::move(path), status);
  const int error = look_at(inode, entry.attr, entry.attr_timeout);
  if (error != 0) {
    inodes.forget(inode, 1);
    return error;
  }
  entry.ino = number(inode);
  entry.entry_timeout = valid_s();
  return 0;
}

int FileSystem::look_up(Inode& directory, const char* name, fuse_entry_param& entry) {
  Descriptor path = find(directory, name);
  return path.number() < 0 ? errno : enter(std::move(path), entry);
}

std::string FileSystem::path_of(const Inode& directory) {
  const std::string root = name_of(inodes.root());
  const std::string name = name_of(directory);
  return name.size() <= root.size() ? std::string()
                                    : name.substr(root == "/" ? 1 : root.size() + 1);
}

MountedName FileSystem::named(const Inode& directory, const char* name, fuse_req_t request) {
  const std::string above = path_of(directory);
  return {directory.path.number(), name, above.empty() ? name : above + "/" + name,
          request == nullptr ? 0 : fuse_req_ctx(request)->pid};
}

Descriptor FileSystem::find(const Inode& directory, const char* name) {
  if (redirection != nullptr) {
    Descriptor redirected = redirection->find(named(directory, name).path);
    if (redirected.number() >= 0) return redirected;
  }
  return Descriptor(uninterrupted(
      [&] { return ::openat(directory.path.number(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC); }));
}

int FileSystem::out_of_descriptors() {
  rlimit limit = {};
  (void)::getrlimit(RLIMIT_NOFILE, &limit);
  if (!has_logged_descriptor_limit_.exchange(true))
    complain(fmt::format(
        "all {} descriptors are in use, one for each file that the kernel remembers, so programs "
        "get the error ENFILE; raise the limit of this process (ulimit -Hn, LimitNOFILE= in a "
        "systemd unit)",
        limit.rlim_cur));
  return ENFILE;
}

int FileSystem::open_file(Inode& inode, int flags, Opened& opened) {
  const bool for_writing = (flags & O_ACCMODE) != O_RDONLY;
  if (for_writing && takes_no_more()) return ENOTCONN;
  const std::lock_guard lock(inode.mutex);
  const int error = attach(inode, for_writing, opened.cache_is_true);
  if (error != 0) return error;
  decide_on(inode);
  opened.handle = &add_handle(inode, flags);
  return 0;
}

int FileSystem::adopt_file(Inode& inode, Descriptor created, int flags, Opened& opened) {
  unreported.leave_to_the_end(inode.device, inode.number);
  const std::lock_guard lock(inode.mutex);
  if (!inode.file || !inode.file->backing().writes()) {
    struct stat status = {};
    if (::fstat(created.number(), &status) != 0) return errno;
    attach(inode, std::move(created), status);
  }
  decide_on(inode);
  opened = {&add_handle(inode, flags), true};
  return 0;
}

int FileSystem::take_unreported_error(Inode& inode) {
  const std::shared_ptr<SharedFile> file = inode.open_file();
  const int error = file ? file->data().take_unreported_error() : 0;
  if (error != 0) return -error;
  const std::lock_guard lock(inode.mutex);  // a close() may be moving the error to `unreported`
  return -unreported.take(inode.device, inode.number);
}

int FileSystem::report_to_reader(Inode& inode) {
  const std::lock_guard lock(inode.mutex);
  // With close=async no close() returns the error to the writer.
  if (inode.file && options.close_async)
    if (const int error = inode.file->data().take_unreported_error(); error != 0)
      unreported.add(inode.device, inode.number, {name_of(inode), error});
  return -unreported.report_to_reader(inode.device, inode.number);
}

int FileSystem::resize(Inode& inode, off_t bytes) {
  if (takes_no_more()) return ENOTCONN;
  Handle* handle = nullptr;
  {
    const std::lock_guard lock(inode.mutex);
    bool cache_is_true = false;
    const int error = attach(inode, true, cache_is_true);
    if (error != 0) return error;
    // If the length stays the same, the kernel keeps its pages whatever the answer is.
    if (!cache_is_true) inode.file->distrust_cache();
    handle = &add_handle(inode, O_WRONLY);
  }
  const int resized = -handle->file().resize(static_cast<std::uint64_t>(bytes));
  close_file(inode, *handle);
  return resized;
}

int FileSystem::attach(Inode& inode, bool for_writing, bool& cache_is_true) {
  cache_is_true = inode.file != nullptr && !inode.file->is_cache_untrue();
  if (inode.file && (!for_writing || inode.file->backing().writes())) return 0;
  Descriptor backing = open_backing(inode.path, for_writing);
  struct stat status = {};
  // Without its length the file cannot be gathered: appends would overwrite existing data.
  if (backing.number() < 0 || ::fstat(backing.number(), &status) != 0) return errno;
  if (!inode.file) {
    const Version version = version_of(status);
    cache_is_true = inode.cached == version;
    inode.cached = version;
    inode.has_no_capability = false;
  }
  attach(inode, std::move(backing), status);
  return 0;
}

void FileSystem::attach(Inode& inode, Descriptor opened, const struct stat& now) {
  if (inode.file) return inode.file->backing().add(std::move(opened));
  auto backing = std::make_unique<BackingDescriptor>();
  backing->add(std::move(opened));
  inode.file = std::make_shared<SharedFile>(aggregator, std::move(backing), now);
}

/// Decides, before the answer to the first open(), whether the kernel reads and writes the file by
/// itself. The speed of file systems mounted within the backing directory is unknown, so their
/// files are gathered.
void FileSystem::decide_on(Inode& inode) {
  SharedFile& file = *inode.file;
  if (file.is_decided()) return;
  if (!passes_through() || inode.device != inodes.root().device) return file.gather();
  auto kernel = std::make_unique<KernelBacking>(session, file.backing().number());
  if (kernel->error() == 0) {
    ++passed_through_;
    return file.pass_through(std::move(kernel));
  }
  file.gather();
  const bool for_ever = kernel->error() == EPERM || kernel->error() == ELOOP;
  if (for_ever && !refused_.exchange(true) && options.mode == Mode::passthrough)
    complain(fmt::format(
        "--mode passthrough: the kernel does not allow it ({}), for example in a container or on a "
        "stacked file system; crfs gathers the writes, as with --mode direct",
        std::strerror(kernel->error())));
}

/// Writes through the kernel's cache cost one more copy, and a request for each page that they fill
/// in part. So handles that only write bypass the cache, if the kernel then drops the pages that
/// other programs have read. Handles that read use it, for speed and so that they can be mapped.
/// When the kernel passes a file through, some writes still come to the daemon: the kernel does not
/// follow later changes of O_APPEND and O_DIRECT, and it clears set-id bits even for users that may
/// keep them.
Handle& FileSystem::add_handle(Inode& inode, int flags) {
  const int access = flags & O_ACCMODE;
  bool direct = false;
  if (inode.file->is_passed_through()) {
    struct stat status = {};
    direct = access != O_RDONLY && ((flags & (O_APPEND | O_DIRECT)) != 0 ||
                                    (status_of(inode, status) == 0 && has_special_bits(status)));
    if (access == O_RDWR) inode.may_be_mapped = true;
  } else {
    direct = (access == O_WRONLY && !options.writeback() && promises.drops_pages()) ||
             (access != O_RDONLY && !inode.file->backing().reads());
  }
  inode.handles.push_back(std::make_unique<Handle>(*inode.file, direct, access != O_RDONLY));
  return *inode.handles.back();
}

MountStatistics FileSystem::statistics() const {
  const Mode mode = options.writeback() ? Mode::writeback
                    : passes_through()  ? Mode::passthrough
                                        : Mode::direct;
  return {mode, aggregator.statistics(), passed_through_};
}

void FileSystem::close_file(Inode& inode, Handle& handle) {
  {
    const std::lock_guard lock(inode.mutex);
    std::erase_if(inode.handles, [&](const auto& one) { return one.get() == &handle; });
    if (!inode.handles.empty()) return;
  }
  closing.finish_later(inode);
}

namespace {

/// Syncs a file through the mount. True if the name led to that file, and the sync succeeded.
bool sync_by_name(const std::string& path, ino_t shown_number, dev_t backing_device) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat status = {};
  const bool synced = file >= 0 && ::fstat(file, &status) == 0 && status.st_ino == shown_number &&
                      status.st_dev != backing_device && ::fsync(file) == 0;
  if (file >= 0) (void)::close(file);
  return synced;
}

}  // namespace

/// A close returns to the program before the daemon gets the end of the handle.
void FileSystem::wait_for_writers() {
  constexpr std::chrono::milliseconds longest(500);
  constexpr std::chrono::milliseconds step(5);
  for (auto waited = step * 0; waited < longest; waited += step) {
    bool is_any_open = false;
    for (Inode* inode : inodes.hold_all()) {
      {
        const std::lock_guard lock(inode->mutex);
        is_any_open = is_any_open || has_writer(*inode);
      }
      inodes.forget(*inode, 1);
    }
    if (!is_any_open) return;
    std::this_thread::sleep_for(step);
  }
}

void FileSystem::take_from_kernel() {
  if (redirection != nullptr) wait_for_writers();
  ends_ = true;
  if (!options.writeback()) return take_pages();
  // A program that was writing when `ends_` was set leaves pages for the next pass. The number of
  // passes has a limit because a program may write to a mapping all the time.
  std::uint64_t before = ~std::uint64_t{0};
  for (int pass = 0; pass < 200 && aggregator.statistics().writes_in != before; ++pass) {
    before = aggregator.statistics().writes_in;
    take_pages();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    take_pages();
  }
}

/// With the kernel's write-back cache it also asks for attributes before the next write.
void FileSystem::take_pages() {
  std::vector<Inode*> written;
  for (Inode* inode : inodes.hold_all()) {
    const auto file = inode->open_file();
    if (file && file->backing().writes() && !file->is_passed_through()) {
      fuse_lowlevel_notify_inval_inode(session, number(*inode), -1, 0);  // attributes only
      written.push_back(inode);
    } else {
      inodes.forget(*inode, 1);
    }
  }
  // syncfs() would not wait for the answers to the requests that it causes.
  if (!sync_in_child(written))
    for (Inode* inode : written) fuse_lowlevel_notify_inval_inode(session, number(*inode), 0, 0);
  for (Inode* inode : written) inodes.forget(*inode, 1);
}

/// A child process without a descriptor of the mount syncs the files: if the daemon is killed
/// meanwhile, the kernel ends the mount, and with it the child's waiting. A thread of the daemon
/// would keep the mount alive and wait for its own answers for ever, and block all programs that
/// write to any disk. Returns false if some file was not synced: it has no name any more, or may
/// not be read.
bool FileSystem::sync_in_child(const std::vector<Inode*>& written) {
  const std::string root = name_of(inodes.root());
  std::vector<std::string> paths;
  for (const Inode* inode : written) {
    const std::string name = name_of(*inode);
    paths.push_back(name.starts_with(root) ? options.mountpoint + "/" + name.substr(root.size())
                                           : "");
  }
  int known[2] = {-1, -1};
  if (paths.empty()) return true;
  if (::pipe2(known, O_CLOEXEC) != 0) return false;
  const pid_t child = ::fork();
  if (child == 0) {  // forked from a process with threads: system calls only
    char byte = 0;
    (void)::dup2(known[0], STDIN_FILENO);
    if (::close_range(STDIN_FILENO + 1, ~0U, 0) != 0) ::_exit(EXIT_FAILURE);
    bool all = ::read(STDIN_FILENO, &byte, 1) == 1;  // `taker_` is set now, requests are answered
    for (std::size_t i = 0; i < paths.size() && all; ++i)
      all = sync_by_name(paths[i], inodes.shown_number(*written[i]), written[i]->device);
    ::_exit(all ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  taker_ = child;
  (void)!::write(known[1], "", 1);
  ::close(known[0]);
  ::close(known[1]);
  int status = -1;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  taker_ = 0;
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

void FileSystem::drain() {
  for (Inode* inode : inodes.hold_all()) {
    bool is_unfinished = false;
    {
      const std::lock_guard lock(inode->mutex);
      is_unfinished = ends_ && has_writer(*inode);
      inode->handles.clear();  // no program uses them any more
    }
    if (is_unfinished && redirection != nullptr) redirection->note_loss(inode->path);
    closing.finish(*inode);
    inodes.forget(*inode, 1);
  }
}

}  // namespace cairn
