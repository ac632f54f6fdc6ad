#include "base/checksum.hpp"

#include <gtest/gtest.h>

#include <string_view>

#include "base/vector_registers_in_use.hpp"

namespace cairn {
namespace {

Bytes text(std::string_view value) { return std::as_bytes(std::span(value.data(), value.size())); }

TEST(Checksum, KnownAnswers) {
  EXPECT_EQ(crc32c(text("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c_reference(text("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c({}), 0U);
  const Blob zeros(32);
  EXPECT_EQ(crc32c(zeros), 0x8A9136AAU);  // RFC 3720, B.4
  EXPECT_EQ(crc32(text("123456789")), 0xCBF43926U);
  EXPECT_EQ(crc32(text("6789"), crc32(text("12345"))), 0xCBF43926U);
}

TEST(Checksum, LeavesTheVectorRegistersClean) {
  const Blob data(4096);
  const auto untouched = leaves_upper_halves_in_use([] { use_upper_half(); });
  if (!untouched) GTEST_SKIP() << "this processor does not say which registers are in use";
  EXPECT_TRUE(*untouched) << "the test would notice nothing";
  std::uint32_t crc = 0;
  EXPECT_FALSE(*leaves_upper_halves_in_use([&] { crc += crc32c(data); }));
  EXPECT_FALSE(*leaves_upper_halves_in_use([&] { crc += crc32(data); }));
  EXPECT_NE(crc, 0u);
}

TEST(Checksum, EqualsReferenceAtEveryLengthAndOffset) {
  Blob data(9000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 131 + i / 7);
  for (std::size_t length : {0UL, 1UL, 63UL, 511UL, 512UL, 513UL, 4096UL, 4609UL, 8990UL})
    for (std::size_t offset = 0; offset < 10; ++offset) {
      const Bytes part = Bytes(data).subspan(offset, length);
      ASSERT_EQ(crc32c(part), crc32c_reference(part)) << length << "+" << offset;
    }
}

TEST(Checksum, ContinuesOverPieces) {
  const auto whole = text("a checkpoint in two pieces");
  EXPECT_EQ(crc32c(whole.subspan(7), crc32c(whole.first(7))), crc32c(whole));
}

}  // namespace
}  // namespace cairn
