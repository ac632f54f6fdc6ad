// Memory for chunks, allocated once. Not locked: its owner must do that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn {

class ChunkPool {
 public:
  /// Has at least one chunk. Memory that is never used is never touched, and costs nothing.
  ChunkPool(std::uint64_t pool_bytes, std::uint64_t chunk_bytes);
  ~ChunkPool();
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  /// Null if all is in use.
  std::byte* take();
  void give(std::byte* chunk);

  std::size_t used() const { return untouched_ - free_.size(); }
  std::size_t most_used() const { return most_used_; }

 private:
  const std::size_t chunks_;
  const std::uint64_t chunk_bytes_;
  std::byte* const memory_;
  std::size_t untouched_ = 0;     ///< the first chunk that was never taken
  std::vector<std::byte*> free_;  ///< given back; the last is the likeliest to be in a CPU cache
  std::size_t most_used_ = 0;
};

}  // namespace cairn
