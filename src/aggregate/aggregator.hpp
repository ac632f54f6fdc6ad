// Turns many small writes into few large ones that go on while the writer computes.
//
// An Aggregator has the memory and the threads, an AggregatedFile what was written to one backing
// file and is not there yet, a Writer (one per open handle) what it has been told of errors. Local;
// no file system in it: the mount and the preload library are doors to it.
//
// What is written is seen at once by read() and size() of the same AggregatedFile, and is as
// durable as sync() made it. Errors of the backing file are kept, and told once to each handle, by
// its next drain() or sync(); the bytes that could not be written are lost, as with a page cache.
//
// All may be called by several threads at once. No lock that a writer may hold while it waits for
// memory is needed to complete a write, and whoever waits does some of the writing itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "aggregate/backing_file.hpp"
#include "base/bytes.hpp"

namespace cairn {

struct AggregateOptions {
  std::uint64_t pool_bytes = std::uint64_t{64} << 20;  ///< memory for what is not written yet
  std::uint64_t chunk_bytes = std::uint64_t{1} << 20;  ///< a power of two; at most pool_bytes
  /// Chunks that lie behind one another in a file go in one write of at most so many bytes. How
  /// many there are depends on how long the backing file system takes, so slow ones get larger
  /// writes.
  std::uint64_t write_bytes = std::uint64_t{16} << 20;
  int io_threads = 4;    ///< writes under way at a time, those of waiting writers included
  bool discard = false;  ///< write nothing, to measure what else takes time
};

struct AggregateStatistics {
  std::uint64_t writes_in = 0, bytes_in = 0;    ///< calls of write() and append()
  std::uint64_t writes_out = 0, bytes_out = 0;  ///< operations on backing files
  std::uint64_t waits = 0;                      ///< writers that found no free memory
  std::uint64_t errors = 0;                     ///< writes that failed
  std::uint64_t pool_used_bytes = 0, pool_most_bytes = 0;
};

class Aggregator;
class BufferedFile;
class Scheduler;

class AggregatedFile {
 public:
  /// The backing file is `size` bytes long, and must not change but through this object, as long as
  /// it lives.
  AggregatedFile(Aggregator& aggregator, std::unique_ptr<BackingFile> backing, std::uint64_t size);
  /// Drains first.
  ~AggregatedFile();
  AggregatedFile(const AggregatedFile&) = delete;
  AggregatedFile& operator=(const AggregatedFile&) = delete;

  std::uint64_t size();
  /// All of `data` is taken, or minus an errno is returned and none.
  int write(std::uint64_t offset, Bytes data);
  /// At the end as it is then; several may do so at once and none overwrites another.
  int append(Bytes data);
  /// Bytes read, less than asked for at the end only, or minus an errno.
  ssize_t read(std::uint64_t offset, MutableBytes buffer);
  int resize(std::uint64_t bytes);

  /// A place in the errors of a file: what a handle was told so far.
  class Told {
    friend class AggregatedFile;
    std::uint64_t seen_ = 0;
  };
  /// For a handle that opens now; an error that nobody was told yet will be told to it.
  Told opened();
  /// Waits until the backing file has all that was written before the call; the error that came up
  /// since `told` was last asked, as minus an errno, or 0.
  int drain(Told& told);
  /// drain(), then the backing file is synced; its error counts too.
  int sync(Told& told, bool data_only);
  /// Waits as drain() does and tells nobody of errors: a barrier.
  void settle();
  /// The error that no handle was told yet, as minus an errno, or 0. It counts as told then: no
  /// handle that opens later is told.
  int take_untold();
  /// Whether an error has come up since this was made, told or not: what was lost is not in the
  /// backing file.
  bool has_failed();
  /// Drains, then makes `change` while nothing else happens to the file; its size is asked anew.
  int change_backing(const std::function<int(BackingFile&)>& change);
  /// What is not written yet need not be any more: no name leads to the file.
  void abandon();

 private:
  Scheduler& scheduler_;
  std::shared_ptr<BufferedFile> file_;
};

class Aggregator {
 public:
  explicit Aggregator(const AggregateOptions& options);
  /// Every AggregatedFile must be gone.
  ~Aggregator();

  /// Waits until what was written to all files before the call is in their backing files.
  void settle_all();
  AggregateStatistics statistics() const;

 private:
  friend class AggregatedFile;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace cairn
