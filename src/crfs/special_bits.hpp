// Clears the set-id bits of a file when another user than root changes its data.
#pragma once

#include "crfs/file_system.hpp"

namespace cairn {

/// Call after a change of the data of `inode`; does nothing for requests of root. The backing file
/// would keep the bits, as a daemon of root writes it.
void drop_special_bits(FileSystem& files, fuse_req_t request, Inode& inode);
/// The same regardless of the user; true if it cleared bits.
bool drop_special_bits(Inode& inode);
/// 0 or an errno.
int set_mode(Inode& inode, mode_t mode);

}  // namespace cairn
