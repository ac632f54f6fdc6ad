#include "aggregate/backing_write.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

namespace cairn {
namespace {

/// Returns the count of bytes written, or minus an errno.
ssize_t write_once(BackingFile& backing, std::uint64_t offset, std::span<const Bytes> pieces) {
  if (pieces.size() == 1) return backing.write_at(offset, pieces.front());
  return backing.write_pieces_at(offset, pieces.data(), static_cast<int>(pieces.size()));
}

/// The pieces without their first `bytes`.
std::span<Bytes> rest_of(std::span<Bytes> pieces, std::uint64_t bytes) {
  while (!pieces.empty() && bytes >= pieces.front().size()) {
    bytes -= pieces.front().size();
    pieces = pieces.subspan(1);
  }
  if (!pieces.empty()) pieces.front() = pieces.front().subspan(bytes);
  return pieces;
}

/// Gathers pieces that lie behind one another, and writes them as one operation.
class Operations {
 public:
  Operations(Scheduler& scheduler, BackingFile& backing)
      : scheduler_(scheduler), backing_(backing) {}

  void add(std::uint64_t offset, Bytes piece) {
    if (offset_ + bytes_ != offset || bytes_ + piece.size() > scheduler_.options().write_bytes ||
        count_ == pieces_most)
      carry_out();
    if (count_ == 0) offset_ = offset;
    bytes_ += piece.size();
    pieces_[count_++] = piece;
  }

  /// Call after the last add().
  WriteOutcome outcome() {
    carry_out();
    return outcome_;
  }

 private:
  void carry_out() {
    if (count_ == 0) return;
    const std::uint64_t from = offset_;
    const int error = write();
    if (offset_ > from) outcome_.end = offset_;
    if (error != 0) {
      ++scheduler_.counters().errors;
      outcome_.error = error;
    }
    bytes_ = count_ = 0;
  }

  /// 0 or minus an errno; afterwards `offset_` is the end of what was written.
  int write() {
    if (scheduler_.options().discard) {
      offset_ += bytes_;
      return 0;
    }
    std::span<Bytes> left(pieces_.data(), count_);
    while (!left.empty()) {
      const ssize_t put = write_once(backing_, offset_, left);
      ++scheduler_.counters().writes_out;
      if (put == -EINTR) continue;
      // A write of 0 bytes gives no reason, and repeating it may never end.
      if (put <= 0) return put < 0 ? static_cast<int>(put) : -EIO;
      scheduler_.counters().bytes_out += static_cast<std::uint64_t>(put);
      offset_ += static_cast<std::uint64_t>(put);
      left = rest_of(left, static_cast<std::uint64_t>(put));
    }
    return 0;
  }

  Scheduler& scheduler_;
  BackingFile& backing_;
  std::uint64_t offset_ = 0, bytes_ = 0;
  std::size_t count_ = 0;
  std::array<Bytes, pieces_most> pieces_;
  WriteOutcome outcome_;
};

}  // namespace

WriteOutcome write_chunks(Scheduler& scheduler, BackingFile& backing, const Chunk& first) {
  Operations operations(scheduler, backing);
  const std::uint64_t bytes_most = scheduler.options().write_bytes;
  for (const Chunk* chunk = &first; chunk != nullptr; chunk = chunk->behind.get())
    for (const Range& range : chunk->written().all())
      for (std::uint64_t from = range.begin; from < range.end; from += bytes_most)
        operations.add(from, chunk->bytes({from, std::min(range.end, from + bytes_most)}));
  return operations.outcome();
}

}  // namespace cairn
