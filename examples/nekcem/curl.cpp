#include "curl.hpp"

#include <utility>

namespace nekcem {
namespace {

// Each adds `factor` times the derivative of `from` in one direction to `to`. The number of points
// is known to the compiler, which unrolls the loops.

template <int points>
void add_d_dx(const double* derivative, double factor, const double* from, double* to) {
  for (int row = 0; row < points * points; ++row, from += points, to += points)
    for (int i = 0; i < points; ++i) {
      double sum = 0;
      for (int m = 0; m < points; ++m) sum += derivative[i * points + m] * from[m];
      to[i] += factor * sum;
    }
}

// In y and z, neighbours in the direction are `values` apart, and as many stand side by side.
template <int points, int values>
void add_d_dline(const double* derivative, double factor, const double* from, double* to) {
  for (int j = 0; j < points; ++j)
    for (int m = 0; m < points; ++m) {
      const double weight = factor * derivative[j * points + m];
      for (int i = 0; i < values; ++i) to[j * values + i] += weight * from[m * values + i];
    }
}

template <int points>
void add_d_dy(const double* derivative, double factor, const double* from, double* to) {
  constexpr int plane = points * points;
  for (int k = 0; k < points; ++k)
    add_d_dline<points, points>(derivative, factor, from + k * plane, to + k * plane);
}

template <int points>
void add_d_dz(const double* derivative, double factor, const double* from, double* to) {
  add_d_dline<points, points * points>(derivative, factor, from, to);
}

template <int points>
void add_curl(const double* derivative, double factor, const std::array<const double*, 3>& from,
              const std::array<double*, 3>& to) {
  add_d_dy<points>(derivative, factor, from[2], to[0]);
  add_d_dz<points>(derivative, -factor, from[1], to[0]);
  add_d_dz<points>(derivative, factor, from[0], to[1]);
  add_d_dx<points>(derivative, -factor, from[2], to[1]);
  add_d_dx<points>(derivative, factor, from[1], to[2]);
  add_d_dy<points>(derivative, -factor, from[0], to[2]);
}

template <int... order>
constexpr std::array<AddCurl, sizeof...(order)> table(std::integer_sequence<int, order...>) {
  return {add_curl<order + 2>...};
}

}  // namespace

AddCurl add_curl_for(int points) {
  static constexpr auto functions = table(std::make_integer_sequence<int, order_max>());
  return functions[points - 2];
}

}  // namespace nekcem
