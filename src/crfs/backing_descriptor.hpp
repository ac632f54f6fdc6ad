// A file of the backing directory, accessed through its descriptors.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "aggregate/backing_file.hpp"
#include "files/descriptor.hpp"

namespace cairn {

/// Opens the file of the O_PATH descriptor `path`. A file opened for writing is opened for reading
/// too if that is allowed: the kernel reads through handles that only write. Never uses O_APPEND,
/// with which Linux ignores the offset of pwrite(). On an error returns a descriptor of -1, and
/// sets errno.
Descriptor open_backing(const Descriptor& path, bool for_writing);

/// "/proc/self/fd/N", for calls that take no O_PATH descriptor.
std::string name_in_proc(const Descriptor& descriptor);

class BackingDescriptor final : public BackingFile {
 public:
  /// Adds a descriptor, whose access mode adds reading, writing or both. Call it at least once
  /// before all other functions.
  void add(Descriptor descriptor);
  bool reads() const { return reader_ >= 0; }
  bool writes() const { return writer_ >= 0; }
  int writer() const { return writer_; }
  /// Any descriptor of the file.
  int number() const { return reads() ? reader_ : writer_; }
  /// Returns what a close() of the file would return, without closing it: 0 or minus an errno.
  /// Network file systems write on close, and report an exceeded quota then.
  int flush();

  /// Appends at the current end. Bytes written, or minus an errno.
  ssize_t append(Bytes data);

  ssize_t write_at(std::uint64_t offset, Bytes data) override;
  ssize_t write_pieces_at(std::uint64_t offset, const Bytes* pieces, int count) override;
  ssize_t read_at(std::uint64_t offset, MutableBytes buffer) override;
  int resize(std::uint64_t bytes) override;
  int sync(bool data_only) override;
  std::int64_t size() override;

 private:
  /// The descriptor used for writes, if there is one: Linux may report errors of writes to that one
  /// only.
  int written() const { return writes() ? writer_ : reader_; }

  std::atomic<int> reader_ = -1;
  std::atomic<int> writer_ = -1;
  std::mutex mutex_;
  std::vector<Descriptor> owned_;  ///< guarded
};

}  // namespace cairn
