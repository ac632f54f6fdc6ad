// Attributes of files: read and changed; those of the file system.
#include <fcntl.h>
#include <sys/statvfs.h>

#include "crfs/operations.hpp"
#include "crfs/request_user.hpp"
#include "crfs/special_bits.hpp"

namespace cairn {
namespace {

int answer_attributes(FileSystem& files, fuse_req_t request, Inode& inode) {
  struct stat status = {};
  double valid_s = 0;
  const int error = files.look_at(inode, status, valid_s);
  if (error == 0) fuse_reply_attr(request, &status, valid_s);
  return error;
}

/// ESTALE if a name led to the file that leads to another one now. A file that is open may have no
/// name, and for some calls on it the kernel gives no handle.
int check_name(FileSystem& files, Inode& inode) {
  std::unique_ptr<Redirection::Change> none;
  return files.redirection == nullptr || inode.open_file()
             ? 0
             : files.redirection->admit(inode.path, O_PATH, 0, none);
}

int get_attributes(FileSystem& files, fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
  Inode& inode = files.inode(number);
  if (const int stale = check_name(files, inode); stale != 0) return stale;
  // Without the answer the kernel does not take a write into its cache.
  if (S_ISREG(inode.type) && files.takes_no_more(request)) return ENOTCONN;
  return answer_attributes(files, request, inode);
}

/// Acts as the requesting user, so that the kernel clears special bits as it would without crfs.
int set_owner(fuse_req_t request, Inode& inode, const struct stat& wanted, int which) {
  const std::lock_guard lock(inode.changing_mode);
  const RequestUser user(request);
  const uid_t owner = (which & FUSE_SET_ATTR_UID) != 0 ? wanted.st_uid : static_cast<uid_t>(-1);
  const gid_t group = (which & FUSE_SET_ATTR_GID) != 0 ? wanted.st_gid : static_cast<gid_t>(-1);
  return errno_of(
      ::fchownat(inode.path.number(), "", owner, group, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
}

timespec time_wanted(const timespec& time, int which, int given, int now) {
  if ((which & now) != 0) return {0, UTIME_NOW};
  return (which & given) != 0 ? time : timespec{0, UTIME_OMIT};
}

int set_times(Inode& inode, const struct stat& wanted, int which) {
  const timespec times[2] = {
      time_wanted(wanted.st_atim, which, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW),
      time_wanted(wanted.st_mtim, which, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW)};
  return errno_of(::utimensat(inode.path.number(), "", times, AT_EMPTY_PATH));
}

constexpr int owner_bits = FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID;
constexpr int time_bits =
    FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;

int change(FileSystem& files, fuse_req_t request, Inode& inode, const struct stat& wanted,
           int which) {
  int error = 0;
  if ((which & FUSE_SET_ATTR_MODE) != 0) error = set_mode(inode, wanted.st_mode);
  if (error == 0 && (which & owner_bits) != 0) error = set_owner(request, inode, wanted, which);
  if (error == 0 && (which & FUSE_SET_ATTR_SIZE) != 0) {
    error = files.resize(inode, wanted.st_size);
    if (error == 0 && (which & FUSE_SET_ATTR_MODE) == 0) drop_special_bits(files, request, inode);
  }
  if (error == 0 && (which & time_bits) != 0) error = set_times(inode, wanted, which);
  return error;
}

/// A handle has been admitted when it was opened.
int admit(FileSystem& files, fuse_req_t request, Inode& inode, const struct stat& wanted, int which,
          const fuse_file_info* info, std::unique_ptr<Redirection::Change>& change) {
  if (files.redirection == nullptr || info != nullptr) return 0;
  if ((which & FUSE_SET_ATTR_SIZE) == 0) return check_name(files, inode);
  const int empties = wanted.st_size == 0 ? O_TRUNC : 0;
  return files.redirection->admit(inode.path, O_WRONLY | empties, fuse_req_ctx(request)->pid,
                                  change);
}

int set_attributes(FileSystem& files, fuse_req_t request, fuse_ino_t number, struct stat* wanted,
                   int which, fuse_file_info* info) {
  Inode& inode = files.inode(number);
  std::unique_ptr<Redirection::Change> redirected;
  if (const int refused = admit(files, request, inode, *wanted, which, info, redirected);
      refused != 0)
    return refused;
  // Writes that come later to the backing file must not change times and bits again.
  const std::shared_ptr<SharedFile> file = inode.open_file();
  if (file && (which & ~FUSE_SET_ATTR_SIZE) != 0) {
    file->forget_times();
    file->settle();
  }
  const int error = change(files, request, inode, *wanted, which);
  return error != 0 ? error : answer_attributes(files, request, inode);
}

int get_space(FileSystem& files, fuse_req_t request, fuse_ino_t number) {
  struct statvfs space = {};
  if (::fstatvfs(files.inode(number).path.number(), &space) != 0) return errno;
  fuse_reply_statfs(request, &space);
  return 0;
}

}  // namespace

void add_attribute_operations(fuse_lowlevel_ops& operations) {
  operations.getattr = answering<get_attributes>;
  operations.setattr = answering<set_attributes>;
  operations.statfs = answering<get_space>;
}

}  // namespace cairn
