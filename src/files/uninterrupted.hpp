// What a system call leaves undone is done by calling it again. Templates, so that the simulation
// runs the same loops over calls of its own.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace cairn {

/// Linux moves at most 2 GiB less a page per call; a round number below that.
inline constexpr std::size_t longest_transfer_bytes = std::size_t{1} << 30;

/// Calls again while a signal interrupts. Returns what the system call returned, errno set.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Fills `buffer` with as many calls of read_some(MutableBytes, offset) as it takes, which is as
/// pread. How many bytes were read: fewer only where the file ends.
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

/// Writes all of `data` with as many calls of write_some(Bytes, offset) as it takes, which is as
/// pwrite.
template <class WriteSome>
Status write_on(const std::string& path, std::uint64_t offset, Bytes data, WriteSome write_some) {
  for (std::size_t done = 0; done < data.size();) {
    const Bytes rest = data.subspan(done, std::min(data.size() - done, longest_transfer_bytes));
    const ssize_t put = uninterrupted([&] { return write_some(rest, offset + done); });
    // A write of nothing tells no reason; going on could go on forever.
    if (put <= 0) return tl::unexpected<Error>(errno_error(put < 0 ? errno : EIO, "write", path));
    done += static_cast<std::size_t>(put);
  }
  return {};
}

}  // namespace cairn
