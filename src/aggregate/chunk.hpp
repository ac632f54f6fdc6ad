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

/// The data of one window that the backing file does not have. Offsets are those of the file.
class Chunk {
 public:
  /// Chunks to be written: number of the chunk to index of its window.
  using Queue = std::map<std::uint64_t, std::uint64_t>;

  /// Allocates all that it needs except the memory of begin(), so that nothing fails later.
  Chunk() : open_(1) {
    written_.make_room();
    Queue queue = {{0, 0}};
    queued_ = queue.extract(queue.begin());
  }

  void begin(std::uint64_t window_begin, Scheduler::Memory memory) {
    begin_ = window_begin;
    memory_ = std::move(memory);
  }

  /// Afterwards the next write() allocates nothing.
  void make_room() { written_.make_room(); }

  void write(std::uint64_t offset, Bytes data) {
    std::memcpy(at(offset), data.data(), data.size());
    written_.add({offset, offset + data.size()});
    if (number_ == 0) place_->bytes += data.size();
  }

  /// Copies its own bytes over those in `buffer`, which begins at `offset`.
  void overlay(std::uint64_t offset, MutableBytes buffer) const {
    for (const Range& of : written_.all()) {
      const std::uint64_t from = std::max(of.begin, offset);
      const std::uint64_t to = std::min(of.end, offset + buffer.size());
      if (from < to) std::memcpy(buffer.data() + (from - offset), at(from), to - from);
    }
  }

  Bytes bytes(Range range) const { return {at(range.begin), range.end - range.begin}; }

  std::uint64_t begin() const { return begin_; }
  /// Its data cover the whole window.
  bool full(std::uint64_t window_bytes) const {
    return written_.covered_to(begin_) == begin_ + window_bytes;
  }
  const Ranges& written() const { return written_; }
  void cut(std::uint64_t end) { written_.cut(end); }

  std::uint64_t number() const { return number_; }  ///< in its file's queue; 0: not in it yet
  /// From here until it is in the queue, a thread that needs memory may enqueue it.
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

  std::shared_ptr<Chunk> behind;  ///< the next chunk of the same operation

 private:
  std::byte* at(std::uint64_t offset) const { return memory_.get() + (offset - begin_); }

  std::uint64_t begin_ = 0;
  Scheduler::Memory memory_;
  Ranges written_;
  std::uint64_t number_ = 0;
  Queue::node_type queued_;     ///< until it is in the queue
  Scheduler::OpenChunks open_;  ///< its list node, until that is in the scheduler's list
  Scheduler::OpenChunks::iterator place_ = {};  ///< from then on
};

}  // namespace cairn
