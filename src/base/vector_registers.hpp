// The state in which functions of ISA-L leave the vector registers of the processor.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cairn {

#if defined(__x86_64__)

namespace detail {

[[gnu::target("avx")]] inline void clear_upper_halves() { _mm256_zeroupper(); }

}  // namespace detail

/// ISA-L returns with bits in the upper halves of the registers. Until these are cleared, each SSE
/// instruction of the program depends on them: measured, a loop of floating-point numbers takes a
/// third longer. So whatever calls ISA-L calls this after it.
inline void clear_vector_registers() {
  static const bool has_upper_halves = __builtin_cpu_supports("avx") != 0;
  if (has_upper_halves) detail::clear_upper_halves();
}

#else

inline void clear_vector_registers() {}

#endif

}  // namespace cairn
