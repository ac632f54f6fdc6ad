// Which parity protects which data, and how lost blocks are rebuilt.
//
// A stripe has `data` blocks and `parity` blocks; parity i is the sum of coefficient(i, j) * data
// j. For copies and XOR all coefficients are 1. Reed-Solomon uses a Cauchy matrix whose columns are
// scaled so that the first row has only ones: any `parity` lost blocks of a stripe can be rebuilt,
// and the first parity equals that of XOR.
#pragma once

#include <vector>

#include "codec/combination.hpp"

namespace cairn {

/// How to compute lost blocks of a stripe. Slots 0 to data-1 are the data, those above the parity.
struct StripeRepair {
  std::vector<int> sources;  ///< slots to read, in the order of the combination's inputs
  std::vector<int> targets;  ///< lost slots, in the order of its outputs
  Combination combination;
};

class ErasureCode {
 public:
  /// data >= 1, parity >= 0, and data + parity <= 256; with more than one of both it is
  /// Reed-Solomon.
  ErasureCode(int data, int parity);

  int data() const { return generator_.columns; }
  int parity() const { return generator_.rows; }

  /// From all data to all parity.
  Combination encoder() const { return Combination(generator_); }

  /// `lost` are distinct slots, at most parity() of them, ascending.
  StripeRepair repair(const std::vector<int>& lost) const;

 private:
  GfMatrix generator_;  ///< parity() rows, data() columns
};

}  // namespace cairn
