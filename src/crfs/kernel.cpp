#include "crfs/kernel.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>

#include "crfs/file_system.hpp"
#include "crfs/passthrough.hpp"

namespace cairn {
namespace {

/// The size of one read request.
constexpr std::uint32_t read_ahead_bytes = std::uint32_t{1} << 20;

// Parts of the kernel's interface that older headers lack: a feature, and the offset of its field.
constexpr std::uint64_t feature_passthrough = std::uint64_t{1} << 37;
constexpr std::size_t max_stack_depth_at = offsetof(fuse_init_out, flags2) + sizeof(std::uint32_t);
/// Linux 6.12. Older kernels do not update the length of a file that they write through.
constexpr std::uint32_t least_minor = 41;
/// Linux 6.6. In older kernels a direct write leaves stale pages in the cache.
constexpr std::uint32_t dropping_minor = 39;

Promises& promises_of(void* user_data) { return static_cast<FileSystem*>(user_data)->promises; }

/// Reports an unexpected error to libfuse as the end of the mount. Otherwise libfuse prints a
/// message, and may cancel a thread that holds stderr at that moment.
ssize_t receive(int descriptor, void* buffer, std::size_t size, void* user_data) {
  const ssize_t got = ::read(descriptor, buffer, size);
  // A read() during the unmount fails with ECONNABORTED instead of ENODEV.
  if (got < 0 && errno == ECONNABORTED) errno = ENODEV;
  if (got < 0 && errno != EINTR && errno != EAGAIN && errno != ENOENT && errno != ENODEV) {
    static_cast<FileSystem*>(user_data)->receive_error = errno;
    errno = ENODEV;
  }
  if (got > 0)
    promises_of(user_data).see({static_cast<std::byte*>(buffer), static_cast<std::size_t>(got)});
  return got;
}

ssize_t send(int descriptor, iovec* pieces, int count, void* user_data) {
  if (count > 1) {
    put_backing(pieces[1]);
    promises_of(user_data).put_in(*static_cast<const fuse_out_header*>(pieces[0].iov_base),
                                  {static_cast<std::byte*>(pieces[1].iov_base), pieces[1].iov_len});
  }
  return ::writev(descriptor, pieces, count);
}

}  // namespace

void Promises::see(Bytes request) {
  fuse_in_header header;
  fuse_init_in first;
  if (request.size() < sizeof header) return;
  std::memcpy(&header, request.data(), sizeof header);
  if (header.opcode != FUSE_INIT || request.size() < sizeof header + sizeof first) return;
  std::memcpy(&first, request.data() + sizeof header, sizeof first);
  offered_ = first.flags;
  if ((first.flags & FUSE_INIT_EXT) != 0) offered_ |= std::uint64_t{first.flags2} << 32;
  has_passthrough_ =
      wants_passthrough_ && first.minor >= least_minor && (offered_ & feature_passthrough) != 0;
  drops_pages_ = first.minor >= dropping_minor;
  first_ = header.unique;
}

void Promises::put_in(const fuse_out_header& header, MutableBytes answer) {
  if (first_ == 0 || header.unique != first_) return;
  first_ = 0;
  fuse_init_out out;
  if (header.error != 0 || answer.size() < sizeof out) return;
  std::memcpy(&out, answer.data(), sizeof out);
  out.flags |= static_cast<std::uint32_t>(offered_ & FUSE_HANDLE_KILLPRIV_V2);
  if (has_passthrough_) {
    out.flags |= FUSE_INIT_EXT;
    out.flags2 |= static_cast<std::uint32_t>(feature_passthrough >> 32);
    const std::uint32_t depth = 1;  // the backing directory is not on top of another one
    std::memcpy(reinterpret_cast<std::byte*>(&out) + max_stack_depth_at, &depth, sizeof depth);
  }
  out.max_readahead = std::max(out.max_readahead, read_ahead_bytes);
  std::memcpy(answer.data(), &out, sizeof out);
}

void watch_first_request(fuse_session* session) {
  const fuse_custom_io through_us = {send, receive, nullptr, nullptr};
  (void)fuse_session_custom_io(session, &through_us, fuse_session_fd(session));
}

void tune_cache(const std::string& mountpoint) {
  struct statx status = {};
  // Must not send a request to the file system: no thread serves it yet.
  if (::statx(AT_FDCWD, mountpoint.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE,
              &status) != 0)
    return;
  const std::string directory =
      fmt::format("/sys/class/bdi/{}:{}/", status.stx_dev_major, status.stx_dev_minor);
  std::ofstream(directory + "read_ahead_kb") << (read_ahead_bytes >> 10);
  std::ofstream(directory + "strict_limit") << 0;
  std::ofstream(directory + "max_ratio") << 100;
}

}  // namespace cairn
