// For tests: whether the upper halves of the vector registers hold anything.
#pragma once

#include <cstdint>
#include <optional>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace cairn {

#if defined(__x86_64__)

namespace detail {

[[gnu::target("xsave")]] inline std::uint64_t state_in_use() { return _xgetbv(1); }
[[gnu::target("avx")]] inline void use_upper_half() {
  asm volatile("vpcmpeqb %%ymm0, %%ymm0, %%ymm0" ::: "xmm0");
}

}  // namespace detail

/// After `action`; nothing if this processor does not say.
template <class Action>
std::optional<bool> leaves_upper_halves_in_use(Action action) {
  std::uint32_t features = 0;
  std::uint32_t other = 0;
  if (__get_cpuid_count(0xd, 1, &features, &other, &other, &other) == 0) return std::nullopt;
  constexpr std::uint32_t says_what_is_in_use = 1U << 2;
  if ((features & says_what_is_in_use) == 0 || !__builtin_cpu_supports("avx2")) return std::nullopt;
  action();
  constexpr std::uint64_t upper_halves = 1U << 2 | 1U << 6;  // of 256 bits, and of 512
  return (detail::state_in_use() & upper_halves) != 0;
}

inline void use_upper_half() { detail::use_upper_half(); }

#else

template <class Action>
std::optional<bool> leaves_upper_halves_in_use(Action action) {
  action();
  return std::nullopt;
}
inline void use_upper_half() {}

#endif

}  // namespace cairn
