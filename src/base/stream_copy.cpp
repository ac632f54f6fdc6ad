#include "base/stream_copy.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace cairn {
namespace {

void plain_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

#ifdef __SSE2__
constexpr std::size_t line_bytes = 64;
constexpr std::size_t worth_streaming = 256 << 10;  // smaller copies fit in the caches

std::size_t bytes_to_next_line(const std::byte* place) {
  return (line_bytes - reinterpret_cast<std::uintptr_t>(place) % line_bytes) % line_bytes;
}

/// `to` is at the beginning of a cache line; `bytes` are whole lines.
void stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t step = sizeof(__m128i);
  for (std::size_t line = 0; line < bytes; line += line_bytes)
    for (std::size_t i = line; i < line + line_bytes; i += step)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  _mm_sfence();  // before any later write that announces the copy
}
#endif

}  // namespace

void stream_copy(MutableBytes to, Bytes from) {
#ifdef __SSE2__
  if (from.size() >= worth_streaming) {
    const std::size_t head = bytes_to_next_line(to.data());
    plain_copy(to.data(), from.data(), head);
    to = to.subspan(head);
    from = from.subspan(head);
    const std::size_t lines = from.size() / line_bytes * line_bytes;
    stream_lines(to.data(), from.data(), lines);
    to = to.subspan(lines);
    from = from.subspan(lines);
  }
#endif
  plain_copy(to.data(), from.data(), from.size());
}

}  // namespace cairn
