// Turns many small writes into few large ones that go on while the writer computes.
//
// An Aggregator has the memory and the threads. An AggregatedFile has the data of one file that its
// backing file does not have yet. An ErrorCursor, one per open handle, knows which errors the
// handle has received. Local. It contains no file system: the mount and the preload library use it.
//
// read() and size() of the same AggregatedFile see written data at once; only sync() makes them
// durable. An error of the backing file is kept, and the next drain() or sync() of each handle
// returns it once. The bytes that could not be written are lost, as with a page cache.
//
// All functions may be called by several threads at once. A writer may wait for memory while it
// holds a lock; completing a write needs none of these locks. A waiting thread does some of the
// writing itself.
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
  /// The largest write: adjacent chunks of a file are written together up to this size. While a
  /// slow file system is busy, more chunks become ready, so it gets larger writes.
  std::uint64_t write_bytes = std::uint64_t{16} << 20;
  int io_threads = 4;    ///< most writes at a time, including those of waiting writers
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
  /// The backing file is `size` bytes long. As long as this object lives, only it may change the
  /// file.
  AggregatedFile(Aggregator& aggregator, std::unique_ptr<BackingFile> backing, std::uint64_t size);
  /// Drains first.
  ~AggregatedFile();
  AggregatedFile(const AggregatedFile&) = delete;
  AggregatedFile& operator=(const AggregatedFile&) = delete;

  std::uint64_t size();
  /// Takes all of `data`, or takes nothing and returns minus an errno.
  int write(std::uint64_t offset, Bytes data);
  /// Writes at the current end. Several threads may append at once: none overwrites another's data.
  int append(Bytes data);
  /// Bytes read, less than asked for at the end only, or minus an errno.
  ssize_t read(std::uint64_t offset, MutableBytes buffer);
  int resize(std::uint64_t bytes);

  /// A position in the sequence of a file's errors: the handle has received those before it.
  class ErrorCursor {
    friend class AggregatedFile;
    std::uint64_t position_ = 0;
  };
  /// For a handle that opens now. It will receive the last error if no handle has received that
  /// yet.
  ErrorCursor opened();
  /// Waits until the backing file has all data written before the call. Returns minus the errno of
  /// the last error that `seen` has not received, or 0.
  int drain(ErrorCursor& seen);
  /// drain(), then syncs the backing file; an error of that counts too.
  int sync(ErrorCursor& seen, bool data_only);
  /// Waits as drain() does, and leaves errors to the next drain() or sync().
  void settle();
  /// Minus the errno of the last error that no handle has received yet, or 0. Marks it as received:
  /// a handle that opens later does not get it.
  int take_unreported_error();
  /// An error has occurred, received or not: the backing file lacks the data of failed writes.
  bool has_failed();
  /// Drains, then calls `change` while no other operation runs on the file, then reads its size
  /// again.
  int change_backing(const std::function<int(BackingFile&)>& change);
  /// Drops what is not being written yet: the file has no name any more.
  void abandon();

 private:
  Scheduler& scheduler_;
  std::shared_ptr<BufferedFile> file_;
};

class Aggregator {
 public:
  explicit Aggregator(const AggregateOptions& options);
  /// Every AggregatedFile must have been destroyed.
  ~Aggregator();

  /// Waits until the backing files have all data written before the call.
  void settle_all();
  AggregateStatistics statistics() const;

 private:
  friend class AggregatedFile;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace cairn
