#include "crfs/special_bits.hpp"

namespace cairn {

void drop_special_bits(FileSystem& files, fuse_req_t request, Inode& inode) {
  if (!inode.may_have_special_bits || fuse_req_ctx(request)->uid == 0) return;
  struct stat status = {};
  if (::fstatat(inode.path.number(), "", &status, AT_EMPTY_PATH) != 0) return;
  // Without the right to execute, S_ISGID means something else.
  const mode_t dropped = (status.st_mode & S_IXGRP) != 0 ? S_ISUID | S_ISGID : S_ISUID;
  inode.may_have_special_bits = false;
  if ((status.st_mode & dropped) == 0) return;
  (void)::chmod(name_in_proc(inode.path).c_str(), status.st_mode & 07777 & ~dropped);
  // Attributes only: of pages it would wait for, this request may be holding one.
  fuse_lowlevel_notify_inval_inode(files.session, files.number(inode), -1, 0);
}

}  // namespace cairn
