// Repeats system calls that were interrupted or moved too few bytes. Templates, so that the
// simulation uses the same loops for its own calls.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace cairn {

/// Linux moves at most 2 GiB minus one page per call; this is a round number below that.
inline constexpr std::size_t longest_transfer_bytes = std::size_t{1} << 30;

/// Repeats the call while a signal interrupts it. Returns the result of the system call, with errno
/// set.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Fills `buffer` by calling read_some(MutableBytes, offset), which works like pread, as often as
/// needed. Returns the number of bytes read: fewer than asked for only at the end of the file.
template <class ReadSome>
Result<std::size_t> read_on(const std::string& path, std::uint64_t offset, MutableBytes buffer,
                            ReadSome read_some) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const MutableBytes rest =
        buffer.subspan(done, std::min(buffer.size() - done, longest_transfer_bytes));
    const ssize_t got = uninterrupted([&] { return read_some(rest, offset + done); });
    if (got < 0) return tl::unexpected<Error>(errno_error(errno, "read", path));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

/// Writes all of `data` by calling write_some(Bytes, offset), which works like pwrite, as often as
/// needed.
template <class WriteSome>
Status write_on(const std::string& path, std::uint64_t offset, Bytes data, WriteSome write_some) {
  for (std::size_t done = 0; done < data.size();) {
    const Bytes rest = data.subspan(done, std::min(data.size() - done, longest_transfer_bytes));
    const ssize_t put = uninterrupted([&] { return write_some(rest, offset + done); });
    // A write of 0 bytes gives no reason, and repeating it may never end.
    if (put <= 0) return tl::unexpected<Error>(errno_error(put < 0 ? errno : EIO, "write", path));
    done += static_cast<std::size_t>(put);
  }
  return {};
}

}  // namespace cairn
