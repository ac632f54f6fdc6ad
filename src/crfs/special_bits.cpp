#include "crfs/special_bits.hpp"

#include "crfs/operations.hpp"

namespace cairn {

bool drop_special_bits(Inode& inode) {
  const std::lock_guard lock(inode.changing_mode);
  // Cleared before the mode is read: if the bits are set after that, the flag is set again, and the
  // next write checks them.
  if (!inode.may_have_special_bits.exchange(false)) return false;
  struct stat status = {};
  if (::fstatat(inode.path.number(), "", &status, AT_EMPTY_PATH) != 0) return false;
  // Without the right to execute, S_ISGID means something else.
  const mode_t dropped = (status.st_mode & S_IXGRP) != 0 ? S_ISUID | S_ISGID : S_ISUID;
  if ((status.st_mode & dropped) == 0) return false;
  (void)::chmod(name_in_proc(inode.path).c_str(), status.st_mode & 07777 & ~dropped);
  return true;
}

void drop_special_bits(FileSystem& files, fuse_req_t request, Inode& inode) {
  if (!inode.may_have_special_bits || fuse_req_ctx(request)->uid == 0) return;
  // Attributes only. Invalidating pages would wait for them, and this request may hold one.
  if (drop_special_bits(inode))
    fuse_lowlevel_notify_inval_inode(files.session, files.number(inode), -1, 0);
}

int set_mode(Inode& inode, mode_t mode) {
  const std::lock_guard lock(inode.changing_mode);
  if ((mode & (S_ISUID | S_ISGID)) != 0) inode.may_have_special_bits = true;
  return errno_of(::chmod(name_in_proc(inode.path).c_str(), mode));
}

}  // namespace cairn
