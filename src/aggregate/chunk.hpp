// Part of a file in memory.
#pragma once

#include <algorithm>
#include <cstring>

#include "aggregate/ranges.hpp"
#include "aggregate/scheduler.hpp"
#include "base/bytes.hpp"

namespace cairn {

/// What was written to one window and is not in the backing file. Offsets are those of the file.
class Chunk {
 public:
  Chunk(std::uint64_t window_begin, Scheduler::Memory memory)
      : begin_(window_begin), memory_(std::move(memory)) {}

  void write(std::uint64_t offset, Bytes data) {
    std::memcpy(at(offset), data.data(), data.size());
    written_.add({offset, offset + data.size()});
  }

  /// Copies what it has of the bytes from `offset` on over those in `buffer`.
  void overlay(std::uint64_t offset, MutableBytes buffer) const {
    for (const Range& of : written_.all()) {
      const std::uint64_t from = std::max(of.begin, offset);
      const std::uint64_t to = std::min(of.end, offset + buffer.size());
      if (from < to) std::memcpy(buffer.data() + (from - offset), at(from), to - from);
    }
  }

  Bytes bytes(Range range) const { return {at(range.begin), range.end - range.begin}; }

  std::uint64_t begin() const { return begin_; }
  /// Whether all of its window was written.
  bool full(std::uint64_t window_bytes) const {
    return written_.covered_to(begin_) == begin_ + window_bytes;
  }
  const Ranges& written() const { return written_; }
  void cut(std::uint64_t end) { written_.cut(end); }

  std::uint64_t number = 0;                    ///< in its file's queue; 0: not in it yet
  Scheduler::OpenChunks::iterator place = {};  ///< as long as it is not in the queue

 private:
  std::byte* at(std::uint64_t offset) const { return memory_.get() + (offset - begin_); }

  std::uint64_t begin_;
  Scheduler::Memory memory_;
  Ranges written_;
};

}  // namespace cairn
