#include "codec/xor.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cairn {
namespace {

Blob random_blob(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Blob blob(size);
  for (std::byte& byte : blob) byte = static_cast<std::byte>(random());
  return blob;
}

TEST(Xor, EqualsReferenceAtEveryLengthAndAlignment) {
  const Blob source = random_blob(5000, 1);
  const Blob start = random_blob(5000, 2);
  for (const std::size_t length : {0UL, 1UL, 31UL, 32UL, 33UL, 63UL, 64UL, 1000UL, 4096UL, 4801UL})
    for (const std::size_t source_at : {0UL, 1UL, 16UL, 32UL, 33UL})
      for (const std::size_t target_at : {0UL, 3UL, 32UL}) {
        Blob fast = start;
        Blob plain = start;
        const Bytes part = Bytes(source).subspan(source_at, length);
        xor_into(MutableBytes(fast).subspan(target_at), part);
        xor_into_reference(MutableBytes(plain).subspan(target_at), part);
        ASSERT_EQ(fast, plain) << length << " " << source_at << " " << target_at;
      }
}

TEST(Xor, AnyBlockIsTheSumOfTheOthers) {
  const std::vector<Blob> data = {random_blob(1000, 1), random_blob(700, 2), random_blob(1000, 3)};
  Blob parity(1000);
  for (const Blob& block : data) xor_into(parity, block);
  for (std::size_t lost = 0; lost < data.size(); ++lost) {
    Blob rebuilt = parity;
    for (std::size_t other = 0; other < data.size(); ++other)
      if (other != lost) xor_into(rebuilt, data[other]);
    rebuilt.resize(data[lost].size());
    EXPECT_EQ(rebuilt, data[lost]);
  }
}

}  // namespace
}  // namespace cairn
