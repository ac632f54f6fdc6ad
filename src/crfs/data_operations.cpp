// Operations on the data of files: read, write, change in place.
#include <fcntl.h>
#include <unistd.h>

#include <ctime>

#include "crfs/operations.hpp"
#include "crfs/special_bits.hpp"

namespace cairn {
namespace {

int read(FileSystem& files, fuse_req_t request, fuse_ino_t number, std::size_t size, off_t offset,
         fuse_file_info* info) {
  thread_local std::vector<std::byte> buffer;
  if (buffer.size() < size) buffer.resize(size);
  SharedFile& file = handle_of(info).file();
  const ssize_t got = file.read(static_cast<std::uint64_t>(offset), {buffer.data(), size});
  if (got < 0) return static_cast<int>(-got);
  const bool passed_through = file.is_passed_through();
  fuse_reply_buf(request, reinterpret_cast<const char*>(buffer.data()),
                 static_cast<std::size_t>(got));
  // sendfile() and readahead() put these pages into the cache of the mount, which the kernel's own
  // writes to a passed-through file bypass.
  if (passed_through)
    fuse_lowlevel_notify_inval_inode(files.session, number, offset, static_cast<off_t>(size));
  return 0;
}

std::int64_t now_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

/// Writes, and syncs if the program opened the file with O_SYNC or O_DSYNC. Bytes taken, or minus
/// an errno.
ssize_t put(Handle& handle, Bytes data, off_t offset, const fuse_file_info& info) {
  SharedFile& file = handle.file();
  // Writes from the kernel's cache have their final offset, also for handles that append.
  const bool appends = (info.flags & O_APPEND) != 0 && handle.direct() && info.writepage == 0;
  const ssize_t taken =
      appends ? file.append(data) : file.write(static_cast<std::uint64_t>(offset), data);
  if (taken < 0 || (info.flags & O_DSYNC) == 0 || info.writepage != 0) return taken;
  const int error = handle.sync((info.flags & O_SYNC) != O_SYNC);  // O_SYNC includes O_DSYNC
  return error != 0 ? error : taken;
}

int write(FileSystem& files, fuse_req_t request, fuse_ino_t number, const char* from,
          std::size_t size, off_t offset, fuse_file_info* info) {
  const std::int64_t began_ns = files.options.profile ? now_ns() : 0;
  if (info->writepage == 0) {
    if (files.takes_no_more()) return ENOTCONN;
    drop_special_bits(files, request, files.inode(number));
  }
  Handle& handle = handle_of(info);
  const ssize_t taken = put(handle, std::as_bytes(std::span(from, size)), offset, *info);
  if (taken < 0) return static_cast<int>(-taken);
  if (files.options.profile) handle.profile(files.profile, offset, size, now_ns() - began_ns);
  fuse_reply_write(request, static_cast<std::size_t>(taken));
  return 0;
}

int allocate(FileSystem& files, fuse_req_t request, fuse_ino_t number, int mode, off_t offset,
             off_t length, fuse_file_info* info) {
  SharedFile& file = handle_of(info).file();
  const int error = -file.change_backing(
      [&] { return -errno_of(::fallocate(file.backing().writer(), mode, offset, length)); });
  if (error == 0) drop_special_bits(files, request, files.inode(number));
  return error;
}

/// The kernel asks only for SEEK_HOLE and SEEK_DATA, which only the backing file can answer.
int seek(FileSystem&, fuse_req_t request, fuse_ino_t, off_t offset, int whence,
         fuse_file_info* info) {
  SharedFile& file = handle_of(info).file();
  file.settle();
  const off_t found = ::lseek(file.backing().number(), offset, whence);
  if (found < 0) return errno;
  fuse_reply_lseek(request, found);
  return 0;
}

int copy_range(FileSystem& files, fuse_req_t request, fuse_ino_t, off_t from_offset,
               fuse_file_info* from_info, fuse_ino_t to_number, off_t to_offset,
               fuse_file_info* to_info, std::size_t size, int flags) {
  SharedFile& from = handle_of(from_info).file();
  SharedFile& to = handle_of(to_info).file();
  from.settle();
  ssize_t copied = 0;
  const int error = -to.change_backing([&] {
    copied = ::copy_file_range(from.backing().number(), &from_offset, to.backing().writer(),
                               &to_offset, size, static_cast<unsigned>(flags));
    return copied < 0 ? -errno : 0;
  });
  if (error != 0) return error;
  drop_special_bits(files, request, files.inode(to_number));
  fuse_reply_write(request, static_cast<std::size_t>(copied));
  return 0;
}

}  // namespace

void add_data_operations(fuse_lowlevel_ops& operations) {
  operations.read = answering<read>;
  operations.write = answering<write>;
  operations.fallocate = returning<allocate>;
  operations.lseek = answering<seek>;
  operations.copy_file_range = answering<copy_range>;
}

}  // namespace cairn
