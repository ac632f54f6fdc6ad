#include "codec/galois.hpp"

#include <cassert>
#include <utility>

namespace cairn {

Coefficient gf_multiply(Coefficient a, Coefficient b) {
  constexpr unsigned polynomial = 0x11D;
  unsigned product = 0;
  for (unsigned x = a, y = b; y != 0; y >>= 1) {
    if ((y & 1U) != 0) product ^= x;
    x <<= 1;
    if ((x & 0x100U) != 0) x ^= polynomial;
  }
  return static_cast<Coefficient>(product);
}

Coefficient gf_inverse(Coefficient a) {
  assert(a != 0);
  // a^254 = 1/a, because a^255 = 1.
  Coefficient result = 1;
  for (int i = 0; i < 254; ++i) result = gf_multiply(result, a);
  return result;
}

GfMatrix operator*(const GfMatrix& a, const GfMatrix& b) {
  assert(a.columns == b.rows);
  GfMatrix product(a.rows, b.columns);
  for (int row = 0; row < a.rows; ++row)
    for (int column = 0; column < b.columns; ++column)
      for (int i = 0; i < a.columns; ++i)
        product.at(row, column) ^= gf_multiply(a.at(row, i), b.at(i, column));
  return product;
}

GfMatrix inverse(GfMatrix matrix) {
  const int size = matrix.rows;
  GfMatrix result(size, size);
  for (int i = 0; i < size; ++i) result.at(i, i) = 1;
  const auto each_column = [size](auto action) {
    for (int column = 0; column < size; ++column) action(column);
  };
  for (int pivot = 0; pivot < size; ++pivot) {
    int from = pivot;
    while (from < size && matrix.at(from, pivot) == 0) ++from;
    assert(from < size && "the matrix is singular");
    each_column([&](int column) {
      std::swap(matrix.at(pivot, column), matrix.at(from, column));
      std::swap(result.at(pivot, column), result.at(from, column));
    });
    const Coefficient scale = gf_inverse(matrix.at(pivot, pivot));
    each_column([&](int column) {
      matrix.at(pivot, column) = gf_multiply(matrix.at(pivot, column), scale);
      result.at(pivot, column) = gf_multiply(result.at(pivot, column), scale);
    });
    for (int row = 0; row < size; ++row) {
      const Coefficient factor = matrix.at(row, pivot);
      if (row == pivot || factor == 0) continue;
      each_column([&](int column) {
        matrix.at(row, column) ^= gf_multiply(factor, matrix.at(pivot, column));
        result.at(row, column) ^= gf_multiply(factor, result.at(pivot, column));
      });
    }
  }
  return result;
}

}  // namespace cairn
