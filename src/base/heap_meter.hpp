// Counts the allocations of operator new in a process, for tests and benchmarks of memory. Include
// it in one source of a program, as it replaces operator new; not with sanitizers, which replace it
// too.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace cairn::heap {

inline std::atomic<std::int64_t> used = 0;
inline std::atomic<std::int64_t> peak = 0;
inline std::atomic<std::int64_t> at_begin = 0;

/// Counts the memory that one thread has allocated, whichever thread frees it.
struct ThreadMeter {
  std::atomic<std::int64_t> used = 0;
  std::int64_t peak = 0;
  std::int64_t at_begin = 0;
};

/// The meter of the calling thread. It is never freed, as memory may outlive the thread that
/// allocated it.
inline ThreadMeter& of_thread() {
  thread_local ThreadMeter* const meter = new (std::malloc(sizeof(ThreadMeter))) ThreadMeter;
  return *meter;
}

inline void begin_peak() {
  at_begin = used.load();
  peak = used.load();
}

/// Bytes, beyond what was in use at begin_peak().
inline std::int64_t peak_since_begin() { return peak - at_begin; }

/// The same of the calling thread alone.
inline void begin_peak_of_thread() {
  ThreadMeter& meter = of_thread();
  meter.peak = meter.at_begin = meter.used;
}
inline std::int64_t peak_of_thread_since_begin() { return of_thread().peak - of_thread().at_begin; }

/// The last bytes of a block have the meter of its owner.
constexpr std::size_t owner_bytes = sizeof(ThreadMeter*);
inline void* owner_of(void* memory, std::size_t usable) {
  return static_cast<std::byte*>(memory) + usable - owner_bytes;
}

inline void* take(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t usable = malloc_usable_size(memory);
  const auto bytes = static_cast<std::int64_t>(usable - owner_bytes);
  const std::int64_t now = used += bytes;
  std::int64_t highest = peak;
  while (now > highest && !peak.compare_exchange_weak(highest, now)) continue;
  ThreadMeter* const mine = &of_thread();
  mine->peak = std::max(mine->peak, mine->used += bytes);
  std::memcpy(owner_of(memory, usable), &mine, owner_bytes);
  return memory;
}

/// Not inlined: the compiler would see memory of `new` go to free(), and warn.
[[gnu::noinline]] inline void give(void* memory) {
  if (memory == nullptr) return;
  const std::size_t usable = malloc_usable_size(memory);
  const auto bytes = static_cast<std::int64_t>(usable - owner_bytes);
  used -= bytes;
  ThreadMeter* owner = nullptr;
  std::memcpy(&owner, owner_of(memory, usable), owner_bytes);
  owner->used -= bytes;
  std::free(memory);
}

}  // namespace cairn::heap

void* operator new(std::size_t bytes) {
  return cairn::heap::take(std::malloc(bytes + cairn::heap::owner_bytes));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return cairn::heap::take(
      std::aligned_alloc(unit, (bytes + cairn::heap::owner_bytes + unit - 1) / unit * unit));
}
void operator delete(void* memory) noexcept { cairn::heap::give(memory); }
void operator delete(void* memory, std::size_t) noexcept { cairn::heap::give(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { cairn::heap::give(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  cairn::heap::give(memory);
}
