// Files that the kernel itself reads and writes in the backing directory (FUSE passthrough, Linux
// 6.12). Nothing is gathered then. It is for backing directories as fast as memory, where a request
// to the daemon costs more than gathering saves.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <functional>

#include "crfs/fuse.hpp"
#include "crfs/mount_options.hpp"
#include "files/descriptor.hpp"

namespace cairn {

/// True if the mount should use it: as `options` say; with Mode::automatic for a fast local file
/// system, measured by a few writes to an unnamed file in `directory`. Does not check whether the
/// kernel supports it.
bool wants_passthrough(const MountOptions& options, const Descriptor& directory);
/// Most calls of `write_page` take less time than a request to the daemon. False if one returns
/// false: it has failed.
bool is_quick(const std::function<bool()>& write_page);

/// As long as this lives, the kernel may read and write a file of the backing directory.
class KernelBacking {
 public:
  /// `backing`: an open descriptor. The kernel writes without privileges, even for a program of
  /// root: it clears set-id bits, and respects quotas and reserved blocks.
  KernelBacking(fuse_session* session, int backing);
  ~KernelBacking();
  KernelBacking(const KernelBacking&) = delete;
  KernelBacking& operator=(const KernelBacking&) = delete;

  int number() const { return number_; }
  /// 0, or the reason for the failure: EPERM without the privilege, ELOOP for a stacked file
  /// system.
  int error() const { return number_ > 0 ? 0 : -number_; }

 private:
  const int device_;
  int number_ = 0;  ///< or minus an errno
};

/// Like fuse_reply_open() and fuse_reply_create(), which in libfuse 3.14 do not support
/// passthrough. All open handles of a file must have the same `backing`.
int reply_open(fuse_req_t request, const fuse_file_info& info, int backing);
int reply_create(fuse_req_t request, const fuse_entry_param& entry, const fuse_file_info& info,
                 int backing);
/// Adds the backing number to `answer` before it is sent to the kernel.
void put_backing(const iovec& answer);

}  // namespace cairn
