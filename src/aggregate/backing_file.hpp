// The file that receives the few large writes.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/bytes.hpp"

namespace cairn {

/// A file of the backing file system. The calls return what system calls do: 0 or a count of bytes,
/// or minus an errno. Several threads may call at once, but no other call overlaps a resize(), and
/// no two concurrent writes have bytes in common. A short count is no error: the caller goes on
/// from there, and calls again after EINTR.
class BackingFile {
 public:
  virtual ~BackingFile() = default;
  virtual ssize_t write_at(std::uint64_t offset, Bytes data) = 0;
  /// Writes adjacent pieces as one operation of the backing file system.
  virtual ssize_t write_pieces_at(std::uint64_t offset, const Bytes* pieces, int count) = 0;
  virtual ssize_t read_at(std::uint64_t offset, MutableBytes buffer) = 0;
  virtual int resize(std::uint64_t bytes) = 0;
  /// With `data_only` like fdatasync.
  virtual int sync(bool data_only) = 0;
  /// Bytes, or minus an errno.
  virtual std::int64_t size() = 0;
};

}  // namespace cairn
