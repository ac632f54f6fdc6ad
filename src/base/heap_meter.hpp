// Counts what operator new gives out in a process, for tests and benchmarks of memory. To be
// included by one source of a program, as it replaces operator new; not under sanitizers, which
// have one of their own.
#pragma once

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace cairn::heap {

inline std::atomic<std::int64_t> used = 0;
inline std::atomic<std::int64_t> peak = 0;
inline std::atomic<std::int64_t> at_begin = 0;

inline void begin_peak() {
  at_begin = used.load();
  peak = used.load();
}

/// Bytes, beyond what was in use at begin_peak().
inline std::int64_t peak_since_begin() { return peak - at_begin; }

inline void* take(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const std::int64_t now = used += static_cast<std::int64_t>(malloc_usable_size(memory));
  std::int64_t highest = peak;
  while (now > highest && !peak.compare_exchange_weak(highest, now)) continue;
  return memory;
}

/// Not inlined: the compiler would see memory of `new` go to free(), and warn.
[[gnu::noinline]] inline void give(void* memory) {
  used -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace cairn::heap

void* operator new(std::size_t bytes) { return cairn::heap::take(std::malloc(bytes)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return cairn::heap::take(std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit));
}
void operator delete(void* memory) noexcept { cairn::heap::give(memory); }
void operator delete(void* memory, std::size_t) noexcept { cairn::heap::give(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { cairn::heap::give(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  cairn::heap::give(memory);
}
