// What is agreed with the kernel beside what libfuse can ask of it.
#pragma once

#include <linux/fuse.h>
#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "crfs/fuse.hpp"

namespace cairn {

/// A write takes the bits and capabilities of a program away. To know whether there are any, the
/// kernel asks for the attribute security.capability before each write through its cache, unless
/// the file system promises to see to it (FUSE_HANDLE_KILLPRIV_V2), as ours does. libfuse 3.14
/// cannot say so. This looks at the first request and at its answer, and puts the promise in; that
/// we read further ahead than the kernel has offered; and that some files are for the kernel to
/// read and write.
class Promises {
 public:
  /// What came from the kernel.
  void see(Bytes request);
  /// What goes to the kernel, `answer` being what is behind the header.
  void put_in(const fuse_out_header& header, MutableBytes answer);

  /// Before the first request: whether the kernel is to be asked for passthrough.
  void want_passthrough(bool wanted) { wants_passthrough_ = wanted; }
  /// Wanted, and the kernel can.
  bool has_passthrough() const { return has_passthrough_; }
  /// The kernel drops what its cache has of the place that a direct handle writes to.
  bool drops_pages() const { return drops_pages_; }

 private:
  std::atomic<std::uint64_t> first_ = 0;  ///< the number of the request, while it is not answered
  std::uint64_t offered_ = 0;             ///< features; set before first_
  bool wants_passthrough_ = false;
  std::atomic<bool> has_passthrough_ = false;
  std::atomic<bool> drops_pages_ = false;
};

/// After the session was mounted, before it is served: all its requests and answers pass
/// `promises`.
void watch_first_request(fuse_session* session);

/// Where the daemon may, lets the kernel's cache of the mount read ahead, and keep what is to be
/// written, as that of another file system.
void tune_cache(const std::string& mountpoint);

}  // namespace cairn
