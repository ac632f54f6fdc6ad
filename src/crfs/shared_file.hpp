// What the handles of one file share, and a handle.
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

/// A regular file that somebody has open. Its size is what was written to it, not what the backing
/// folder has; the time of the last write is that at which the program wrote, and is kept when the
/// bytes are written later. One that is passed through is the backing file, and nothing is kept
/// here.
class SharedFile {
 public:
  /// `now`: what the backing file is like.
  SharedFile(Aggregator& aggregator, std::unique_ptr<BackingDescriptor> backing,
             const struct stat& now);

  // Once, before the first answer to an open(), and for as long as the file is open.
  /// The kernel reads and writes it.
  void pass_through(std::unique_ptr<KernelBacking> kernel) {
    kernel_ = std::move(kernel);
    reader_ = Reader::kernel;
  }
  void gather() { reader_ = Reader::daemon; }
  bool is_decided() const { return reader_ != Reader::nobody; }
  bool is_passed_through() const { return reader_ == Reader::kernel; }
  /// For the answer to open(); 0 where it is not passed through.
  int kernel_number() const { return is_passed_through() ? kernel_->number() : 0; }

  AggregatedFile& data() { return data_; }
  BackingDescriptor& backing() { return backing_; }

  // Bytes read or taken, or minus an errno.
  ssize_t read(std::uint64_t offset, MutableBytes buffer);
  ssize_t write(std::uint64_t offset, Bytes data);
  ssize_t append(Bytes data);
  int resize(std::uint64_t bytes);
  /// By a write or resize.
  bool was_changed() const { return written_ > 0; }
  /// The kernel may have pages that are not what is in the backing file: somebody wrote what may
  /// have been lost, or distrust_cache() was called.
  bool is_cache_untrue() { return cache_is_untrue_ || data_.has_failed(); }
  /// The next open() is to have the kernel drop its pages.
  void distrust_cache() { cache_is_untrue_ = true; }
  /// False while there may be bytes that the backing file does not have.
  bool settled() const { return settled_ == written_; }
  /// Makes what the backing folder says of the file true.
  void show(struct stat& status);

  /// As those of AggregatedFile; afterwards the file is settled, unless it is written meanwhile.
  int drain(AggregatedFile::ErrorCursor& told);
  int sync(AggregatedFile::ErrorCursor& told, bool data_only);
  void settle();
  /// What close() of the backing file would tell of what was written since this was last asked.
  int flush();
  int change_backing(const std::function<int()>& change);
  /// The times of the backing file were set, or are about to be: those shown so far are void.
  void forget_times() { told_time_ = false; }
  /// No name leads to it any more. Never where the backing folder does not count names.
  bool is_nameless() const;

 private:
  ssize_t taken(Bytes data, int error);
  void note_change();
  void settled_to(std::uint64_t mark);

  BackingDescriptor& backing_;
  AggregatedFile data_;
  const bool had_names_;
  std::unique_ptr<KernelBacking> kernel_;
  enum class Reader { nobody, daemon, kernel };
  std::atomic<Reader> reader_ = Reader::nobody;
  std::atomic<std::uint64_t> written_ = 0;  ///< counts changes
  std::atomic<std::uint64_t> settled_ = 0;  ///< of these, so many are in the backing file
  std::atomic<std::uint64_t> flushed_ =
      0;  ///< and of these, so many the backing file was closed after
  std::atomic<bool> cache_is_untrue_ = false;
  std::atomic<std::int64_t> last_write_ns_ = 0;
  std::atomic<bool> told_time_ = false;  ///< somebody was shown last_write_ns_
};

/// What an open() of the program made.
class Handle {
 public:
  /// `direct`: its writes come straight from the program, not from the kernel's cache.
  Handle(SharedFile& file, bool direct);

  SharedFile& file() { return file_; }
  bool direct() const { return direct_; }
  int drain();
  int sync(bool data_only);
  /// What close() is to tell.
  int flush();
  /// Puts a write into the profile. The kernel cuts large ones into pieces, one behind the other.
  void profile(WriteProfile& profile, off_t offset, std::size_t bytes, std::int64_t ns);

 private:
  SharedFile& file_;
  const bool direct_;
  std::mutex mutex_;
  AggregatedFile::ErrorCursor told_;  ///< guarded
  off_t piece_end_ = -1;              ///< guarded; of the last piece that was as long as one can be
  WriteProfile::Write whole_;         ///< guarded; what it is a piece of
};

}  // namespace cairn
