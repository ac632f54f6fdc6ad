// Outputs that are linear combinations of inputs, added up as the inputs come.
#pragma once

#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "codec/galois.hpp"

namespace cairn {

/// outputs[o] = sum over i of coefficients(o, i) * inputs[i], over GF(2^8), by ISA-L.
class Combination {
 public:
  explicit Combination(GfMatrix coefficients);

  int inputs() const { return coefficients_.columns; }
  int outputs() const { return coefficients_.rows; }

  /// Adds one input to all outputs. The input may be shorter than the outputs: it counts as filled
  /// up with zeros. Outputs all have one length; they start as zeros. Any order, each input once.
  void add(int input, Bytes block, std::span<const MutableBytes> outputs) const;

  /// The same byte by byte: the reference that tests compare against.
  void add_reference(int input, Bytes block, std::span<const MutableBytes> outputs) const;

 private:
  bool is_plain_sum(int input) const;

  GfMatrix coefficients_;
  std::vector<unsigned char> tables_;  ///< ISA-L's expanded coefficients, row by row
};

}  // namespace cairn
