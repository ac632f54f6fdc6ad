// A kernel that only computes.
#pragma once

#include <array>

namespace cairn::bench {

/// No compiler can leave it out.
inline volatile double result = 0;

/// One copy of it in a program: inlined in two places, one may run a sixth slower than the other.
[[gnu::noinline]] inline void compute(int times) {
  std::array<double, 8> sums = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int i = 0; i < times; ++i)
    for (double& sum : sums) sum = sum * 0.999999 + 0.000001;
  for (const double sum : sums) result = result + sum;
}

}  // namespace cairn::bench
