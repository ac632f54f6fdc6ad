#include "guide.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace nekcem {
namespace {

constexpr std::int64_t layers_per_wave = 4;
constexpr double pi = std::numbers::pi;
constexpr double cutoff_squared = 2 * pi * pi;  // of both modes: one half wave in x and one in y

}  // namespace

Guide::Guide(std::int64_t layers) : layers_(layers) {
  const auto waves = static_cast<double>(std::max<std::int64_t>(1, layers / layers_per_wave));
  wave_number_z_ = 2 * pi * waves / (static_cast<double>(layers) * element_edge);
  frequency_ = std::sqrt(cutoff_squared + wave_number_z_ * wave_number_z_);
}

double Guide::period() const { return 2 * pi / frequency_; }

std::array<double, components> Guide::exact(double x, double y, double z, double time) const {
  const double sin_x = std::sin(pi * x), cos_x = std::cos(pi * x);
  const double sin_y = std::sin(pi * y), cos_y = std::cos(pi * y);
  const double phase = wave_number_z_ * z - frequency_ * time;
  const double te = frequency_ * pi / cutoff_squared * std::sin(phase);
  const double tm = wave_number_z_ * pi / cutoff_squared * std::sin(phase);
  std::array<double, components> field{};
  field[Ex] = (te - tm) * cos_x * sin_y;
  field[Ey] = (-te - tm) * sin_x * cos_y;
  field[Ez] = std::cos(phase) * sin_x * sin_y;
  field[Hx] = (tm + te) * sin_x * cos_y;
  field[Hy] = (tm - te) * cos_x * sin_y;
  field[Hz] = std::cos(phase) * cos_x * cos_y;
  return field;
}

}  // namespace nekcem
