#include "codec/combination.hpp"

#include <gtest/gtest.h>
#include <isa-l/erasure_code.h>

#include <random>

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

TEST(Combination, EqualsReferenceAtEveryShapeAndLength) {
  std::mt19937 random(1);
  for (const int inputs : {1, 2, 7, 30})
    for (const int outputs : {1, 2, 3, 8})
      for (const std::size_t length : {1UL, 15UL, 31UL, 32UL, 33UL, 64UL, 100UL, 4096UL, 5001UL}) {
        GfMatrix matrix(outputs, inputs);
        for (Coefficient& value : matrix.values) value = static_cast<Coefficient>(random());
        const Combination combination(matrix);
        std::vector<Blob> fast(static_cast<std::size_t>(outputs), Blob(length));
        std::vector<Blob> plain = fast;
        std::vector<MutableBytes> fast_out(fast.begin(), fast.end());
        std::vector<MutableBytes> plain_out(plain.begin(), plain.end());
        for (int input = 0; input < inputs; ++input) {
          Blob block(length - random() % std::min<std::size_t>(length, 40));
          for (std::byte& byte : block) byte = static_cast<std::byte>(random());
          combination.add(input, block, fast_out);
          combination.add_reference(input, block, plain_out);
        }
        ASSERT_EQ(fast, plain) << inputs << " " << outputs << " " << length;
      }
}

}  // namespace
}  // namespace cairn
