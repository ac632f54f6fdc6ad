// An open file, and its handles.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "aggregate/aggregator.hpp"
#include "crfs/backing_descriptor.hpp"
#include "crfs/passthrough.hpp"
#include "crfs/write_profile.hpp"

namespace cairn {

/// A regular file that is open. It shows the size that includes gathered data, and the time when
/// the program wrote; the backing file gets this time when the data reach it later. A file that is
/// passed through has no state here.
class SharedFile {
 public:
  /// `now`: the attributes of the backing file.
  SharedFile(Aggregator& aggregator, std::unique_ptr<BackingDescriptor> backing,
             const struct stat& now);

  // Call one of the two once, before the answer to the first open(). It holds while the file is
  // open.
  /// The kernel reads and writes the file.
  void pass_through(std::unique_ptr<KernelBacking> kernel) {
    kernel_ = std::move(kernel);
    reader_ = Reader::kernel;
  }
  void gather() { reader_ = Reader::daemon; }
  bool is_decided() const { return reader_ != Reader::undecided; }
  bool is_passed_through() const { return reader_ == Reader::kernel; }
  /// For the answer to open(); 0 if the file is not passed through.
  int kernel_number() const { return is_passed_through() ? kernel_->number() : 0; }

  AggregatedFile& data() { return data_; }
  BackingDescriptor& backing() { return backing_; }

  // Bytes read or taken, or minus an errno.
  ssize_t read(std::uint64_t offset, MutableBytes buffer);
  ssize_t write(std::uint64_t offset, Bytes data);
  ssize_t append(Bytes data);
  int resize(std::uint64_t bytes);
  /// A write or resize has changed the file.
  bool was_changed() const { return written_ > 0; }
  /// The kernel may have pages that differ from the backing file: a write has failed, or
  /// distrust_cache() was called.
  bool is_cache_untrue() { return cache_is_untrue_ || data_.has_failed(); }
  /// The next open() lets the kernel drop its pages.
  void distrust_cache() { cache_is_untrue_ = true; }
  /// False while the backing file may lack data.
  bool settled() const { return settled_ == written_; }
  /// Corrects the attributes of the backing file: adds what is not written yet.
  void show(struct stat& status);

  /// Like those of AggregatedFile. Afterwards the file is settled, unless a program writes to it
  /// meanwhile.
  int drain(AggregatedFile::ErrorCursor& seen);
  int sync(AggregatedFile::ErrorCursor& seen, bool data_only);
  void settle();
  /// Returns the error of a close() of the backing file for data written since the last call.
  int flush();
  int change_backing(const std::function<int()>& change);
  /// Call when the times of the backing file are set: times shown before must not overwrite them.
  void forget_times() { has_shown_time_ = false; }
  /// The file has no name any more. Always false if the backing file system does not count names.
  bool is_nameless() const;

 private:
  ssize_t taken(Bytes data, int error);
  void note_change();
  void settled_to(std::uint64_t mark);

  BackingDescriptor& backing_;
  AggregatedFile data_;
  const bool had_names_;
  std::unique_ptr<KernelBacking> kernel_;
  enum class Reader { undecided, daemon, kernel };
  std::atomic<Reader> reader_ = Reader::undecided;
  std::atomic<std::uint64_t> written_ = 0;  ///< counts changes
  std::atomic<std::uint64_t> settled_ = 0;  ///< how many of these changes the backing file has
  std::atomic<std::uint64_t> flushed_ =
      0;  ///< how many of these a flush() of the backing file has covered
  std::atomic<bool> cache_is_untrue_ = false;
  std::atomic<std::int64_t> last_write_ns_ = 0;
  std::atomic<bool> has_shown_time_ = false;  ///< a program has seen last_write_ns_
};

/// An open file description of a program.
class Handle {
 public:
  /// `direct`: its writes bypass the kernel's cache. `writes`: a program may write by it.
  Handle(SharedFile& file, bool direct, bool writes = true);

  SharedFile& file() { return file_; }
  bool direct() const { return direct_; }
  bool writes() const { return writes_; }
  int drain();
  int sync(bool data_only);
  /// The result of close().
  int flush();
  /// Adds a write to the profile. The kernel cuts a large one into adjacent pieces.
  void profile(WriteProfile& profile, off_t offset, std::size_t bytes, std::int64_t ns);

 private:
  SharedFile& file_;
  const bool direct_;
  const bool writes_;
  std::mutex mutex_;
  AggregatedFile::ErrorCursor errors_seen_;  ///< guarded
  off_t piece_end_ = -1;       ///< guarded; end of the last piece of maximum length, or -1
  WriteProfile::Write whole_;  ///< guarded; the write to which that piece belongs
};

}  // namespace cairn
