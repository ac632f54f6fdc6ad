// Memory for chunks, taken from the system once. Not locked: that is its owner's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn {

class ChunkPool {
 public:
  /// At least one chunk. Memory is touched as it is used, so what is never needed costs nothing.
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
  std::vector<std::byte*> free_;  ///< given back; the last one is the likeliest in a cache
  std::size_t most_used_ = 0;
};

}  // namespace cairn
