// Files that the kernel itself reads and writes in the backing folder (FUSE passthrough, Linux
// 6.12). Nothing is gathered then: it is for backing folders that are as quick as memory, where a
// request to the daemon costs more than what it saves.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <functional>

#include "crfs/fuse.hpp"
#include "crfs/mount_options.hpp"
#include "files/descriptor.hpp"

namespace cairn {

/// True where the mount is to have it: as `options` say, or for a local file system that is quick,
/// as a few writes to a file without a name in `folder` show. Whether the kernel can is known
/// later.
bool wants_passthrough(const MountOptions& options, const Descriptor& folder);
/// Whether most calls of `write_page` take less time than a request to the daemon. False where one
/// fails, which it tells by false.
bool is_quick(const std::function<bool()>& write_page);

/// A file of the backing folder that the kernel may read and write, as long as this lives.
class KernelBacking {
 public:
  /// Of the open file `backing`. The kernel writes with nobody's rights, whoever the program is:
  /// set-id bits are taken away, quotas and reserved blocks hold.
  KernelBacking(fuse_session* session, int backing);
  ~KernelBacking();
  KernelBacking(const KernelBacking&) = delete;
  KernelBacking& operator=(const KernelBacking&) = delete;

  int number() const { return number_; }
  /// 0, or why there is none: EPERM without the right, ELOOP for a file system on another one.
  int error() const { return number_ > 0 ? 0 : -number_; }

 private:
  const int device_;
  int number_ = 0;  ///< or minus an errno
};

/// As fuse_reply_open() and fuse_reply_create(), which in libfuse 3.14 know nothing of it. All
/// handles of a file that are open at a time must have the same `backing`.
int reply_open(fuse_req_t request, const fuse_file_info& info, int backing);
int reply_create(fuse_req_t request, const fuse_entry_param& entry, const fuse_file_info& info,
                 int backing);
/// Completes `answer`, which is on its way to the kernel.
void put_backing(const iovec& answer);

}  // namespace cairn
