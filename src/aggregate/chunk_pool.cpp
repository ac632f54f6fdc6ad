#include "aggregate/chunk_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace cairn {
namespace {

std::byte* map_memory(std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

}  // namespace

ChunkPool::ChunkPool(std::uint64_t pool_bytes, std::uint64_t chunk_bytes)
    : chunks_(std::max<std::uint64_t>(1, pool_bytes / chunk_bytes)),
      chunk_bytes_(chunk_bytes),
      memory_(map_memory(chunks_ * chunk_bytes)) {
  free_.reserve(chunks_);
}

ChunkPool::~ChunkPool() { ::munmap(memory_, chunks_ * chunk_bytes_); }

std::byte* ChunkPool::take() {
  if (free_.empty() && untouched_ == chunks_) return nullptr;
  std::byte* chunk = nullptr;
  if (free_.empty()) {
    chunk = memory_ + untouched_++ * chunk_bytes_;
  } else {
    chunk = free_.back();
    free_.pop_back();
  }
  most_used_ = std::max(most_used_, used());
  return chunk;
}

void ChunkPool::give(std::byte* chunk) { free_.push_back(chunk); }

}  // namespace cairn
