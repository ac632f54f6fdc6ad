// The bits that make a program run as its owner or group go when somebody else changes it.
#pragma once

#include "crfs/file_system.hpp"

namespace cairn {

/// After a change of what is in `inode`, unless root made it. Written by the daemon, which may be
/// root, and later, the backing file would keep them.
void drop_special_bits(FileSystem& files, fuse_req_t request, Inode& inode);
/// The same whoever made the change; true if there were such bits.
bool drop_special_bits(Inode& inode);
/// 0 or an errno.
int set_mode(Inode& inode, mode_t mode);

}  // namespace cairn
