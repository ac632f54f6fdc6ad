// The curl inside of one element: where nearly all time of the solver goes.
#pragma once

#include <array>

namespace nekcem {

inline constexpr int order_max = 12;

// Adds `factor` times the curl of `from` to `to`. A vector field has three components, each with
// points^3 values, x fastest. `derivative` is that of the basis.
using AddCurl = void (*)(const double* derivative, double factor,
                         const std::array<const double*, 3>& from,
                         const std::array<double*, 3>& to);

// For elements of so many points in each direction, between 2 and order_max + 1.
AddCurl add_curl_for(int points);

}  // namespace nekcem
