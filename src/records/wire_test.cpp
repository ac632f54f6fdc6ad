#include "records/wire.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

Blob payload_of(char letter, std::size_t size) {
  return Blob(size, static_cast<std::byte>(letter));
}

Blob joined(const std::vector<Blob>& parts) {
  Blob all;
  for (const Blob& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(Wire, EncodedValuesAreDecoded) {
  Encoder out;
  out.u32(0xdeadbeef);
  out.i64(-5);
  out.text("name");
  const Blob blob = out.take();
  EXPECT_EQ(blob[0], std::byte{0xef}) << "little-endian";
  Decoder in(blob);
  EXPECT_EQ(in.u32(), 0xdeadbeefU);
  EXPECT_EQ(in.i64(), -5);
  EXPECT_EQ(in.text(), "name");
  EXPECT_TRUE(in.at_end());
  EXPECT_FALSE(in.failed());
  EXPECT_EQ(in.u64(), 0U);
  EXPECT_TRUE(in.failed());
}

TEST(Wire, AnAbsurdLengthOrCountFails) {
  Encoder out;
  out.u32(0xffffffff);
  const Blob blob = out.take();
  Decoder text(blob);
  EXPECT_EQ(text.text(), "");
  EXPECT_TRUE(text.failed());
  Encoder many;
  many.u64(1ULL << 60);
  const Blob counts = many.take();
  Decoder count(counts);
  EXPECT_EQ(count.count(4), 0U);
  EXPECT_TRUE(count.failed());
}

TEST(Wire, OneFlippedByteLosesOneEnvelopeNotTheOthers) {
  const Blob first = seal(RecordType::rank, 1, payload_of('a', 100));
  const Blob second = seal(RecordType::rank, 1, payload_of('b', 50));
  const Blob third = seal(RecordType::rank, 1, payload_of('c', 70));
  const Blob all = joined({first, second, third});
  ASSERT_EQ(find_envelopes(all).size(), 3U);
  for (std::size_t at = 0; at < all.size(); ++at) {
    Blob damaged = all;
    damaged[at] ^= std::byte{0x10};
    const auto found = find_envelopes(damaged);
    ASSERT_EQ(found.size(), 2U) << at;
    for (const Envelope& envelope : found) {
      const auto letter = static_cast<char>(envelope.payload[0]);
      const std::size_t hit = at < first.size() ? 0 : at < first.size() + second.size() ? 1 : 2;
      ASSERT_NE(letter, static_cast<char>('a' + hit));
    }
  }
}

TEST(Wire, ATruncatedFileKeepsItsWholeEnvelopes) {
  const Blob first = seal(RecordType::rank, 1, payload_of('a', 100));
  const Blob all = joined({first, seal(RecordType::rank, 1, payload_of('b', 50))});
  for (std::size_t size = 0; size < all.size(); ++size)
    ASSERT_EQ(find_envelopes(Bytes(all).first(size)).size(), size < first.size() ? 0U : 1U);
}

}  // namespace
}  // namespace cairn
