#include "basis.hpp"

#include <cmath>
#include <numbers>

namespace nekcem {
namespace {

// The Legendre polynomial of degree n, by its recurrence.
double legendre(int n, double x) {
  double before = 1, value = x;
  if (n == 0) return before;
  for (int k = 2; k <= n; ++k) {
    const double next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
    before = value;
    value = next;
  }
  return value;
}

// A zero of (1 - x^2) P_n'(x), by Newton's method from the nearest Chebyshev point.
double lobatto_node(int n, int i) {
  constexpr int enough = 100;
  double x = -std::cos(std::numbers::pi * i / n);
  for (int iteration = 0; iteration < enough; ++iteration) {
    const double change = (x * legendre(n, x) - legendre(n - 1, x)) / ((n + 1) * legendre(n, x));
    x -= change;
    if (std::abs(change) < 1e-16) break;
  }
  return x;
}

}  // namespace

Basis::Basis(int order) : points(order + 1), derivative(points * points) {
  for (int i = 0; i < points; ++i) {
    nodes.push_back(lobatto_node(order, i));
    const double value = legendre(order, nodes[i]);
    weights.push_back(2 / (order * points * value * value));
  }
  const double corner = order * points / 4.0;
  for (int i = 0; i < points; ++i)
    for (int j = 0; j < points; ++j)
      if (i != j)
        derivative[i * points + j] =
            legendre(order, nodes[i]) / (legendre(order, nodes[j]) * (nodes[i] - nodes[j]));
  derivative.front() = -corner;
  derivative.back() = corner;
}

}  // namespace nekcem
