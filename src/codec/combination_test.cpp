#include "codec/combination.hpp"

#include <gtest/gtest.h>
#include <isa-l/erasure_code.h>

#include <array>
#include <random>

#include "base/vector_registers_in_use.hpp"
#include "codec/xor.hpp"

namespace cairn {
namespace {

TEST(Galois, ReferenceAgreesWithIsal) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b)
      ASSERT_EQ(gf_multiply(static_cast<Coefficient>(a), static_cast<Coefficient>(b)),
                gf_mul(static_cast<unsigned char>(a), static_cast<unsigned char>(b)));
    if (a == 0) continue;
    EXPECT_EQ(gf_multiply(static_cast<Coefficient>(a), gf_inverse(static_cast<Coefficient>(a))), 1);
  }
}

TEST(Galois, InverseTimesMatrixIsOne) {
  std::mt19937 random(3);
  for (int size = 0; size <= 8; ++size) {
    GfMatrix matrix(size, size);  // upper triangular with ones on the diagonal, rows added: regular
    for (int row = 0; row < size; ++row)
      for (int column = row; column < size; ++column)
        matrix.at(row, column) =
            row == column ? Coefficient{1} : static_cast<Coefficient>(random());
    for (int row = 1; row < size; ++row)
      for (int column = 0; column < size; ++column) matrix.at(row, column) ^= matrix.at(0, column);
    const GfMatrix product = inverse(matrix) * matrix;
    for (int row = 0; row < size; ++row)
      for (int column = 0; column < size; ++column)
        EXPECT_EQ(product.at(row, column), row == column ? 1 : 0);
  }
}

TEST(Combination, LeavesTheVectorRegistersClean) {
  GfMatrix factors(1, 1);
  factors.at(0, 0) = Coefficient{3};
  const Combination combination(factors);
  const Blob block(4096, std::byte{5});
  Blob target(4096);
  const std::array<MutableBytes, 1> targets = {MutableBytes(target)};
  const auto after_begin =
      leaves_upper_halves_in_use([&] { combination.begin(0, block, targets); });
  if (!after_begin) GTEST_SKIP() << "this processor does not say which registers are in use";
  EXPECT_FALSE(*after_begin);
  EXPECT_FALSE(*leaves_upper_halves_in_use([&] { combination.add(0, block, targets); }));
  EXPECT_FALSE(*leaves_upper_halves_in_use([&] { xor_into(target, block); }));
}

TEST(Combination, EqualsReferenceAtEveryShapeAndLength) {
  std::mt19937 random(1);
  for (const int inputs : {1, 2, 7, 30})
    for (const int outputs : {1, 2, 3, 8})
      for (const std::size_t length : {1UL, 15UL, 31UL, 32UL, 33UL, 64UL, 100UL, 4096UL, 5001UL}) {
        GfMatrix matrix(outputs, inputs);
        for (Coefficient& value : matrix.values) value = static_cast<Coefficient>(random());
        const Combination combination(matrix);
        std::vector<Blob> fast(static_cast<std::size_t>(outputs), Blob(length, std::byte{7}));
        std::vector<Blob> plain(static_cast<std::size_t>(outputs), Blob(length));
        std::vector<MutableBytes> fast_out(fast.begin(), fast.end());
        std::vector<MutableBytes> plain_out(plain.begin(), plain.end());
        for (int input = 0; input < inputs; ++input) {
          // A block of a mapped file has any alignment.
          const std::size_t begin = random() % 64;
          Blob memory(begin + length - random() % std::min<std::size_t>(length, 40));
          for (std::byte& byte : memory) byte = static_cast<std::byte>(random());
          const Bytes block = Bytes(memory).subspan(begin);
          if (input == 0)
            combination.begin(input, block, fast_out);
          else
            combination.add(input, block, fast_out);
          combination.add_reference(input, block, plain_out);
        }
        ASSERT_EQ(fast, plain) << inputs << " " << outputs << " " << length;
      }
}

TEST(Combination, TheFirstInputMayBeInPlace) {
  GfMatrix matrix(3, 2);
  matrix.values = {1, 1, 9, 5, 0, 1};
  const Combination combination(matrix);
  ASSERT_TRUE(combination.takes_first_as_is(1));
  for (const std::size_t length : {1UL, 31UL, 64UL, 100UL, 1000UL}) {
    std::mt19937 random(static_cast<unsigned>(length));
    std::vector<Blob> outputs(3, Blob(1000, std::byte{3}));
    for (std::byte& byte : outputs[0]) byte = static_cast<std::byte>(random());
    const Blob block(outputs[0].begin(), outputs[0].begin() + static_cast<std::ptrdiff_t>(length));
    std::vector<MutableBytes> views(outputs.begin(), outputs.end());
    combination.begin(1, Bytes(outputs[0]).first(length), views);
    std::vector<Blob> expected(3, Blob(1000));
    std::vector<MutableBytes> expected_views(expected.begin(), expected.end());
    combination.add_reference(1, block, expected_views);
    EXPECT_EQ(outputs, expected) << length;
  }
}

}  // namespace
}  // namespace cairn
