// Features that the daemon negotiates with the kernel itself, as libfuse 3.14 cannot.
#pragma once

#include <linux/fuse.h>
#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "crfs/fuse.hpp"

namespace cairn {

/// A write clears the set-id bits and capabilities of an executable. So the kernel asks for the
/// attribute security.capability before each write through its cache, unless the file system
/// promises to clear them itself (FUSE_HANDLE_KILLPRIV_V2), as crfs does. libfuse 3.14 cannot send
/// this promise. This class reads the first request, and adds to its answer: this promise, a larger
/// read-ahead, and passthrough.
class Promises {
 public:
  /// Inspects a request of the kernel.
  void see(Bytes request);
  /// Changes an answer to the kernel; `answer` follows the header.
  void put_in(const fuse_out_header& header, MutableBytes answer);

  /// Call before the first request.
  void want_passthrough(bool wanted) { wants_passthrough_ = wanted; }
  /// Passthrough is wanted, and the kernel supports it.
  bool has_passthrough() const { return has_passthrough_; }
  /// The kernel drops cached pages that a direct write overwrites.
  bool drops_pages() const { return drops_pages_; }

 private:
  std::atomic<std::uint64_t> first_ = 0;  ///< the number of the first request, until it is answered
  std::uint64_t offered_ = 0;             ///< features; set before first_
  bool wants_passthrough_ = false;
  std::atomic<bool> has_passthrough_ = false;
  std::atomic<bool> drops_pages_ = false;
};

/// Call after the session is mounted and before it is served: passes all its requests and answers
/// to `promises`.
void watch_first_request(fuse_session* session);

/// Sets read-ahead and the share of dirty pages of the mount as for other file systems, if the
/// daemon has the permission.
void tune_cache(const std::string& mountpoint);

}  // namespace cairn
