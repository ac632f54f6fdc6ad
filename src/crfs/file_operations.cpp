// Files: open, create, close, sync.
#include <fcntl.h>

#include "crfs/operations.hpp"
#include "crfs/request_user.hpp"

namespace cairn {
namespace {

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

/// Fills in how the kernel must treat the file.
void fill_reply(const FileSystem::Opened& opened, fuse_file_info& info) {
  info.fh = reinterpret_cast<std::uint64_t>(opened.handle);
  info.direct_io = opened.handle->direct();
  info.keep_cache = opened.cache_is_true && !opened.handle->file().is_passed_through();
  info.noflush = !writes(info.flags);
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 15)
  info.parallel_direct_writes = opened.handle->direct();
#endif
}

/// Opens the file, and empties it if the kernel has left that to this mount (O_TRUNC).
int open_file(FileSystem& files, fuse_req_t request, Inode& inode, int flags,
              FileSystem::Opened& opened) {
  std::unique_ptr<Redirection::Change> change;
  int error = 0;
  if (files.redirection != nullptr)
    error = files.redirection->admit(inode.path, flags, fuse_req_ctx(request)->pid, change);
  if (error == 0) error = files.open_file(inode, flags, opened);
  if (error != 0 || (flags & O_TRUNC) == 0) return error;
  error = -opened.handle->file().resize(0);
  if (error != 0) files.close_file(inode, *opened.handle);
  return error;
}

int open_existing(FileSystem& files, fuse_req_t request, Inode& inode, fuse_file_info& info) {
  FileSystem::Opened opened;
  // A program that only reads gets errors nowhere else, and would take incomplete data for
  // complete.
  const bool only_reads = !writes(info.flags) && !files.is_taker(request);
  int error = only_reads ? files.report_to_reader(inode) : 0;
  if (error == 0) error = open_file(files, request, inode, info.flags, opened);
  if (error == 0) fill_reply(opened, info);
  return error;
}

int open(FileSystem& files, fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  Inode& inode = files.inode(number);
  const int error = open_existing(files, request, inode, *info);
  if (error != 0) return error;
  if (reply_open(request, *info, handle_of(info).file().kernel_number()) != 0)
    files.close_file(inode, handle_of(info));
  return 0;
}

/// A new file, open for reading and writing regardless of its mode; -1 and errno on an error.
Descriptor make_file(FileSystem& files, fuse_req_t request, Inode& directory, const char* name,
                     mode_t mode) {
  const RequestUser user(request);
  if (files.redirection != nullptr)
    if (auto made = files.redirection->create(files.named(directory, name, request), mode))
      return *std::move(made);
  return Descriptor(uninterrupted([&] {
    return ::openat(directory.path.number(), name,
                    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  }));
}

int open_new(FileSystem& files, Descriptor made, fuse_entry_param& entry, fuse_file_info& info) {
  Descriptor path(::open(name_in_proc(made).c_str(), O_PATH | O_CLOEXEC));
  if (path.number() < 0) return errno;
  int error = files.enter(std::move(path), entry);
  if (error != 0) return error;
  Inode& inode = files.inode(entry.ino);
  FileSystem::Opened opened;
  error = files.adopt_file(inode, std::move(made), info.flags, opened);
  if (error == 0)
    fill_reply(opened, info);
  else
    files.inodes.forget(inode, 1);
  return error;
}

int create(FileSystem& files, fuse_req_t request, fuse_ino_t number, const char* name, mode_t mode,
           fuse_file_info* info) {
  Inode& directory = files.inode(number);
  if (files.takes_no_more()) return ENOTCONN;
  fuse_entry_param entry;
  Descriptor made = make_file(files, request, directory, name, mode);
  // Another node or program created it in the backing directory, so the kernel has not checked
  // permissions yet: on ESTALE it looks the name up again, and checks them.
  if (made.number() < 0) return errno == EEXIST && (info->flags & O_EXCL) == 0 ? ESTALE : errno;
  const int error = open_new(files, std::move(made), entry, *info);
  if (error != 0) return error;
  if (reply_create(request, entry, *info, handle_of(info).file().kernel_number()) != 0) {
    files.close_file(files.inode(entry.ino), handle_of(info));
    files.inodes.forget(files.inode(entry.ino), 1);
  }
  return 0;
}

/// Returns `error`, or else an error that occurred while the file was not open, and that no program
/// has received yet.
int with_unreported(FileSystem& files, fuse_ino_t number, int error) {
  const Inode& inode = files.inode(number);
  const int unreported = files.unreported.take(inode.device, inode.number);
  return -(error != 0 ? error : unreported);
}

/// The result of close(). The kernel asks for it once for each closed descriptor of the handle.
int flush(FileSystem& files, fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  if (files.options.close_async || files.is_taker(request)) return 0;
  return with_unreported(files, number, handle_of(info).flush());
}

int release(FileSystem& files, fuse_req_t, fuse_ino_t number, fuse_file_info* info) {
  files.close_file(files.inode(number), handle_of(info));
  return 0;
}

int sync(FileSystem& files, fuse_req_t request, fuse_ino_t number, int data_only,
         fuse_file_info* info) {
  if (files.is_taker(request)) {
    handle_of(info).file().settle();
    return 0;
  }
  return with_unreported(files, number, handle_of(info).sync(data_only != 0));
}

}  // namespace

void add_file_operations(fuse_lowlevel_ops& operations) {
  operations.open = answering<open>;
  operations.create = answering<create>;
  operations.flush = returning<flush>;
  operations.release = returning<release>;
  operations.fsync = returning<sync>;
}

}  // namespace cairn
