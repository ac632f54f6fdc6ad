// The memory in which a writer holds steps until they are written.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/log.hpp"
#include "rbio/shared_memory.hpp"

namespace cairn::rbio {

struct StepBuffer {
  std::uint64_t id = 0;
  std::unique_ptr<Segment> segment;
  /// Per rank of the group: it copies into its own mapping. Empty until they have been asked.
  std::vector<bool> is_mapped_by;
  /// Set by take(); its user resets it after the last access, from any thread. The pool may then
  /// free the segment.
  std::atomic<bool> is_used = false;

  std::uint64_t bytes() const { return segment->bytes().size(); }
};

/// Used by one thread.
class BufferPool {
 public:
  /// `memory` may be null: then only this process needs the buffers. `limit_bytes` 0: two buffers
  /// of any size, else as many as fit.
  BufferPool(std::shared_ptr<SharedMemory> memory, std::uint64_t limit_bytes, Log log)
      : memory_(std::move(memory)), limit_bytes_(limit_bytes), log_(std::move(log)) {}

  /// A buffer of at least so many bytes; null if one of those in use must become free first.
  /// no_space if the limit never allows it, or the node has not so much memory.
  Result<std::shared_ptr<StepBuffer>> take(std::uint64_t bytes);

  /// Those that exist, used or not.
  std::vector<std::uint64_t> ids() const;
  std::uint64_t peak_bytes() const { return peak_bytes_; }

 private:
  std::shared_ptr<StepBuffer> smallest_free(std::uint64_t bytes) const;
  std::size_t drop_free();
  std::uint64_t total_bytes() const;
  std::uint64_t room_bytes() const;
  Result<std::shared_ptr<StepBuffer>> make(std::uint64_t bytes);

  const std::shared_ptr<SharedMemory> memory_;
  const std::uint64_t limit_bytes_;
  const Log log_;
  std::vector<std::shared_ptr<StepBuffer>> buffers_;
  std::uint64_t last_id_ = 0;
  std::uint64_t peak_bytes_ = 0;
};

}  // namespace cairn::rbio
