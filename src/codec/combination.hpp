// Computes outputs that are linear combinations of inputs, one input at a time.
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

  /// Processes the first input, and overwrites the outputs. The input may be shorter than the
  /// outputs: it counts as padded with zeros. All outputs have the same length. `block` may be the
  /// memory of outputs[0] if takes_first_as_is(input), which saves a copy.
  void begin(int input, Bytes block, std::span<const MutableBytes> outputs) const;
  bool takes_first_as_is(int input) const { return coefficients_.at(0, input) == 1; }

  /// Adds another input to all outputs. Inputs may come in any order, each once.
  void add(int input, Bytes block, std::span<const MutableBytes> outputs) const;

  /// The same byte by byte: the reference for tests.
  void add_reference(int input, Bytes block, std::span<const MutableBytes> outputs) const;

 private:
  bool is_plain_sum(int input) const;
  void multiply(int output, int input, Bytes block, MutableBytes target) const;

  GfMatrix coefficients_;
  std::vector<unsigned char> tables_;  ///< ISA-L's expanded coefficients, row by row
};

}  // namespace cairn
