#include "crfs/special_bits.hpp"

#include "crfs/operations.hpp"

namespace cairn {

bool drop_special_bits(Inode& inode) {
  const std::lock_guard lock(inode.changing_mode);
  // First, so that who comes upon bits from here on has the next write look again.
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
  // Attributes only: of pages it would wait for, this request may be holding one.
  if (drop_special_bits(inode))
    fuse_lowlevel_notify_inval_inode(files.session, files.number(inode), -1, 0);
}

int set_mode(Inode& inode, mode_t mode) {
  const std::lock_guard lock(inode.changing_mode);
  if ((mode & (S_ISUID | S_ISGID)) != 0) inode.may_have_special_bits = true;
  return errno_of(::chmod(name_in_proc(inode.path).c_str(), mode));
}

}  // namespace cairn
