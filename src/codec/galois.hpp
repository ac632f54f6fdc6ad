// Arithmetic in GF(2^8) with the polynomial x^8+x^4+x^3+x^2+1 (0x11D), the field of ISA-L.
#pragma once

#include <cstdint>
#include <vector>

namespace cairn {

using Coefficient = std::uint8_t;

/// Multiplies by shift and add, bit by bit: the reference for tests.
Coefficient gf_multiply(Coefficient a, Coefficient b);
/// 1/a; a != 0.
Coefficient gf_inverse(Coefficient a);

/// A small matrix, row by row.
struct GfMatrix {
  int rows = 0;
  int columns = 0;
  std::vector<Coefficient> values;

  GfMatrix(int row_count, int column_count)
      : rows(row_count),
        columns(column_count),
        values(static_cast<std::size_t>(row_count) * static_cast<std::size_t>(column_count)) {}
  Coefficient& at(int row, int column) {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
  Coefficient at(int row, int column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
};

GfMatrix operator*(const GfMatrix& a, const GfMatrix& b);

/// Gauss-Jordan; the matrix must be square and regular.
GfMatrix inverse(GfMatrix matrix);

}  // namespace cairn
