// Files: opened, created, closed, synced.
#include <fcntl.h>

#include "crfs/operations.hpp"
#include "crfs/request_user.hpp"

namespace cairn {
namespace {

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

/// Makes the handle of a file that is open, and says how the kernel is to treat it.
void add_handle(FileSystem& files, Inode& inode, bool cache_is_true, fuse_file_info& info) {
  const std::shared_ptr<SharedFile> file = inode.open_file();
  const bool only_writes = (info.flags & O_ACCMODE) == O_WRONLY;
  // Through the kernel's cache a write is copied once more, and costs two requests where it does
  // not fill a page. Handles that read go through it, for speed and so that they can be mapped.
  const bool direct =
      (only_writes && !files.options.writeback) || (writes(info.flags) && !file->backing().reads());
  info.direct_io = direct;
  info.keep_cache = cache_is_true;
  info.noflush = !writes(info.flags);
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 15)
  info.parallel_direct_writes = direct;
#endif
  auto handle = std::make_unique<Handle>(*file, info.flags, direct,
                                         files.unreported.take(inode.device, inode.number));
  info.fh = reinterpret_cast<std::uint64_t>(handle.release());
}

void drop_handle(FileSystem& files, Inode& inode, const fuse_file_info& info) {
  delete &handle_of(&info);
  files.close_file(inode);
}

int open_existing(FileSystem& files, Inode& inode, fuse_file_info& info) {
  bool cache_is_true = false;
  const int error = files.open_file(inode, writes(info.flags), cache_is_true);
  if (error == 0) add_handle(files, inode, cache_is_true, info);
  return error;
}

int open(FileSystem& files, fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  Inode& inode = files.inode(number);
  const int error = open_existing(files, inode, *info);
  if (error != 0) return error;
  if (fuse_reply_open(request, info) != 0) drop_handle(files, inode, *info);
  return 0;
}

/// A new file, open for reading and writing whatever its mode; -1 and errno if it cannot be made.
Descriptor make_file(fuse_req_t request, Inode& folder, const char* name, mode_t mode) {
  const RequestUser user(request);
  return Descriptor(uninterrupted([&] {
    return ::openat(folder.path.number(), name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    mode);
  }));
}

int open_new(FileSystem& files, Descriptor made, fuse_entry_param& entry, fuse_file_info& info) {
  Descriptor path(::open(name_in_proc(made).c_str(), O_PATH | O_CLOEXEC));
  if (path.number() < 0) return errno;
  const int error = files.enter(std::move(path), entry);
  if (error != 0) return error;
  Inode& inode = files.inode(entry.ino);
  files.adopt_file(inode, std::move(made));
  add_handle(files, inode, true, info);
  return 0;
}

/// It was made meanwhile, behind the kernel's back. Like a new one it is empty if that is asked
/// for.
int open_found(FileSystem& files, Inode& folder, const char* name, fuse_entry_param& entry,
               fuse_file_info& info) {
  int error = files.look_up(folder, name, entry);
  if (error != 0) return error;
  Inode& inode = files.inode(entry.ino);
  error = S_ISREG(inode.type) ? open_existing(files, inode, info) : EEXIST;
  if (error == 0 && (info.flags & O_TRUNC) != 0 && writes(info.flags))
    error = -inode.open_file()->resize(0);
  if (error != 0) files.inodes.forget(inode, 1);
  return error;
}

int create(FileSystem& files, fuse_req_t request, fuse_ino_t number, const char* name, mode_t mode,
           fuse_file_info* info) {
  Inode& folder = files.inode(number);
  fuse_entry_param entry;
  Descriptor made = make_file(request, folder, name, mode);
  int error = made.number() < 0 ? errno : 0;
  if (error == 0)
    error = open_new(files, std::move(made), entry, *info);
  else if (error == EEXIST && (info->flags & O_EXCL) == 0)
    error = open_found(files, folder, name, entry, *info);
  if (error != 0) return error;
  if (fuse_reply_create(request, &entry, info) != 0) {
    drop_handle(files, files.inode(entry.ino), *info);
    files.inodes.forget(files.inode(entry.ino), 1);
  }
  return 0;
}

/// What close() tells; comes once for each descriptor of the handle that is closed.
int flush(FileSystem& files, fuse_req_t, fuse_ino_t, fuse_file_info* info) {
  return files.options.close_async ? 0 : -handle_of(info).flush();
}

int release(FileSystem& files, fuse_req_t, fuse_ino_t number, fuse_file_info* info) {
  drop_handle(files, files.inode(number), *info);
  return 0;
}

int sync(FileSystem&, fuse_req_t, fuse_ino_t, int data_only, fuse_file_info* info) {
  return -handle_of(info).sync(data_only != 0);
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
