// A file of the backing folder by its descriptors.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "aggregate/backing_file.hpp"
#include "files/descriptor.hpp"

namespace cairn {

/// Opens what the O_PATH descriptor `path` stands for. For writing, also for reading where that is
/// allowed: the kernel reads through handles that only write. Never with O_APPEND, by which Linux
/// ignores the offset of pwrite(). A descriptor of -1, and errno, where it cannot.
Descriptor open_backing(const Descriptor& path, bool for_writing);

/// "/proc/self/fd/N", for calls that take no O_PATH descriptor.
std::string name_in_proc(const Descriptor& descriptor);

class BackingDescriptor final : public BackingFile {
 public:
  /// From here on what the descriptor may do can be done; at least one comes before all else.
  void add(Descriptor descriptor);
  bool reads() const { return reader_ >= 0; }
  bool writes() const { return writer_ >= 0; }
  int writer() const { return writer_; }
  /// Whichever there is.
  int number() const { return reads() ? reader_ : writer_; }
  /// What a close() of the file would tell, without closing it: 0 or minus an errno. Network file
  /// systems write then, and tell of full quotas.
  int flush();

  /// Bytes written at the end as it is then, or minus an errno.
  ssize_t append(Bytes data);

  ssize_t write_at(std::uint64_t offset, Bytes data) override;
  ssize_t write_pieces_at(std::uint64_t offset, const Bytes* pieces, int count) override;
  ssize_t read_at(std::uint64_t offset, MutableBytes buffer) override;
  int resize(std::uint64_t bytes) override;
  int sync(bool data_only) override;
  std::int64_t size() override;

 private:
  /// The one that was written through, if any: what it would tell need not be told to another.
  int written() const { return writes() ? writer_ : reader_; }

  std::atomic<int> reader_ = -1;
  std::atomic<int> writer_ = -1;
  std::mutex mutex_;
  std::vector<Descriptor> owned_;  ///< guarded
};

}  // namespace cairn
