// Part of a file in memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "aggregate/ranges.hpp"
#include "aggregate/scheduler.hpp"
#include "base/bytes.hpp"

namespace cairn {

/// What was written to one window and is not in the backing file. Offsets are those of the file.
class Chunk {
 public:
  /// The windows of chunks that are to be written, by the numbers of the chunks.
  using Queue = std::map<std::uint64_t, std::uint64_t>;

  /// It has all that it needs beside begin()'s memory, so that nothing fails later.
  Chunk() : open_(1) {
    written_.make_room();
    Queue queue = {{0, 0}};
    queued_ = queue.extract(queue.begin());
  }

  void begin(std::uint64_t window_begin, Scheduler::Memory memory) {
    begin_ = window_begin;
    memory_ = std::move(memory);
  }

  /// The next write() needs no memory of the system then.
  void make_room() { written_.make_room(); }

  void write(std::uint64_t offset, Bytes data) {
    std::memcpy(at(offset), data.data(), data.size());
    written_.add({offset, offset + data.size()});
    if (number_ == 0) place_->bytes += data.size();
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

  std::uint64_t number() const { return number_; }  ///< in its file's queue; 0: not in it yet
  /// From here until it is in the queue, whoever needs memory may send it off.
  void open(Scheduler& scheduler, std::shared_ptr<BufferedFile> file, std::uint64_t window) {
    open_.front().file = std::move(file);
    open_.front().window = window;
    place_ = scheduler.opened(open_);
  }
  void close(Scheduler& scheduler) { scheduler.closed(place_); }
  void enqueue(Queue& queue, std::uint64_t number, std::uint64_t window) {
    number_ = queued_.key() = number;
    queued_.mapped() = window;
    queue.insert(std::move(queued_));
  }

  std::shared_ptr<Chunk> behind;  ///< what is written together with it, and comes next

 private:
  std::byte* at(std::uint64_t offset) const { return memory_.get() + (offset - begin_); }

  std::uint64_t begin_ = 0;
  Scheduler::Memory memory_;
  Ranges written_;
  std::uint64_t number_ = 0;
  Queue::node_type queued_;                     ///< until it is in the queue
  Scheduler::OpenChunks open_;                  ///< its place among these, until it is there
  Scheduler::OpenChunks::iterator place_ = {};  ///< from then on
};

}  // namespace cairn
