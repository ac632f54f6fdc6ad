#include "base/stream_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace cairn {
namespace {

Blob some_bytes(std::size_t count) {
  Blob bytes(count);
  std::uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

/// A copy between any alignments writes its bytes, and nothing beside them.
TEST(StreamCopy, CopiesAllBytesAndNoOthers) {
  constexpr std::size_t margin = 64;
  for (const std::size_t size : {0U, 1U, 4096U, 262143U, 262144U, 262145U, 300000U, 1U << 20}) {
    const Blob source = some_bytes(size + margin);
    for (const std::size_t from : {0U, 1U, 8U})
      for (const std::size_t before : {0U, 1U, 15U, 16U, 63U}) {
        Blob target(size + 2 * margin, std::byte{0xee});
        const Bytes wanted = Bytes(source).subspan(from, size);
        stream_copy(MutableBytes(target).subspan(before, size), wanted);
        Blob expected(target.size(), std::byte{0xee});
        std::copy(wanted.begin(), wanted.end(),
                  expected.begin() + static_cast<std::ptrdiff_t>(before));
        ASSERT_TRUE(target == expected) << size << " bytes from " << from << " to " << before;
      }
  }
}

}  // namespace
}  // namespace cairn
