// Polynomials of one variable on [-1, 1], given by their values at the Gauss-Lobatto-Legendre
// points.
#pragma once

#include <vector>

namespace nekcem {

struct Basis {
  explicit Basis(int order);

  int points;                   // order + 1, with both ends of the interval
  std::vector<double> nodes;    // ascending
  std::vector<double> weights;  // of the quadrature at the nodes
  std::vector<double>
      derivative;  // row by row: d/dx at node i is the sum over j of [i][j] * value j
};

}  // namespace nekcem
