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

  /// The first input, whatever was in the outputs before. It may be shorter than the outputs: it
  /// counts as filled up with zeros. Outputs all have one length. `block` may begin where
  /// outputs[0] does, if the input is taken there as it is (takes_first_as_is): so it need not be
  /// copied.
  void begin(int input, Bytes block, std::span<const MutableBytes> outputs) const;
  bool takes_first_as_is(int input) const { return coefficients_.at(0, input) == 1; }

  /// Adds another input to all outputs. Any order, each input once.
  void add(int input, Bytes block, std::span<const MutableBytes> outputs) const;

  /// The same byte by byte: the reference that tests compare against.
  void add_reference(int input, Bytes block, std::span<const MutableBytes> outputs) const;

 private:
  bool is_plain_sum(int input) const;
  void multiply(int output, int input, Bytes block, MutableBytes target) const;

  GfMatrix coefficients_;
  std::vector<unsigned char> tables_;  ///< ISA-L's expanded coefficients, row by row
};

}  // namespace cairn
