// A wave that travels along a square guide with metal walls, of which the exact solution is known.
// Units: the speed of light and the impedance of the vacuum are 1.
#pragma once

#include <array>
#include <cstdint>

namespace nekcem {

enum Component { Ex, Ey, Ez, Hx, Hy, Hz, components };

inline constexpr std::array<const char*, components> component_names = {"Ex", "Ey", "Ez",
                                                                        "Hx", "Hy", "Hz"};

// The guide is 1 x 1 wide and made of cubes. Along z it is periodic, and as long as the ranks need.
class Guide {
 public:
  static constexpr int elements_across = 2;
  static constexpr int elements_per_layer = elements_across * elements_across;
  static constexpr double element_edge = 1.0 / elements_across;

  explicit Guide(std::int64_t layers);

  std::int64_t layers() const { return layers_; }
  double period() const;

  // The sum of the modes TE11 and TM11, in which no component is zero.
  std::array<double, components> exact(double x, double y, double z, double time) const;

 private:
  std::int64_t layers_;
  double wave_number_z_;
  double frequency_;  // radians per unit of time
};

}  // namespace nekcem
