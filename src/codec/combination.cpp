#include "codec/combination.hpp"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <cassert>

#include "base/vector_registers.hpp"
#include "codec/xor.hpp"

namespace cairn {
namespace {
constexpr std::size_t table_bytes = 32;  // per coefficient, fixed by ISA-L
}  // namespace

Combination::Combination(GfMatrix coefficients)
    : coefficients_(std::move(coefficients)), tables_(table_bytes * coefficients_.values.size()) {
  if (!tables_.empty())
    ec_init_tables(coefficients_.columns, coefficients_.rows, coefficients_.values.data(),
                   tables_.data());
}

bool Combination::is_plain_sum(int input) const {
  for (int output = 0; output < outputs(); ++output)
    if (coefficients_.at(output, input) > 1) return false;
  return true;
}

/// target = coefficient * block, with any alignment (gf_vect_mul requires both to be aligned).
void Combination::multiply(int output, int input, Bytes block, MutableBytes target) const {
  const auto entry = static_cast<std::size_t>(output * inputs() + input);
  auto* table = const_cast<unsigned char*>(tables_.data() + table_bytes * entry);
  auto* source = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(block.data()));
  auto* result = reinterpret_cast<unsigned char*>(target.data());
  ec_encode_data(static_cast<int>(block.size()), 1, 1, table, &source, &result);
  clear_vector_registers();
}

void Combination::begin(int input, Bytes block, std::span<const MutableBytes> outputs) const {
  assert(static_cast<int>(outputs.size()) == this->outputs());
  // The first output is written last, as it may be the block itself.
  for (int output = this->outputs() - 1; output >= 0; --output) {
    const MutableBytes target = outputs[static_cast<std::size_t>(output)];
    assert(block.size() <= target.size());
    const Coefficient factor = coefficients_.at(output, input);
    if (factor == 0)
      std::fill(target.begin(), target.end(), std::byte{0});
    else if (factor != 1)
      multiply(output, input, block, target);
    else if (block.data() != target.data())
      std::copy(block.begin(), block.end(), target.begin());
    std::fill(target.begin() + static_cast<std::ptrdiff_t>(block.size()), target.end(),
              std::byte{0});
  }
}

void Combination::add(int input, Bytes block, std::span<const MutableBytes> outputs) const {
  assert(static_cast<int>(outputs.size()) == this->outputs());
  if (block.empty() || outputs.empty()) return;
  assert(block.size() <= outputs[0].size());
  if (is_plain_sum(input)) {
    for (int output = 0; output < this->outputs(); ++output)
      if (coefficients_.at(output, input) == 1)
        xor_into(outputs[static_cast<std::size_t>(output)], block);
    return;
  }
  std::vector<unsigned char*> targets;
  for (const MutableBytes& output : outputs)
    targets.push_back(reinterpret_cast<unsigned char*>(output.data()));
  auto* source = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(block.data()));
  ec_encode_data_update(static_cast<int>(block.size()), inputs(), this->outputs(), input,
                        const_cast<unsigned char*>(tables_.data()), source, targets.data());
  clear_vector_registers();
}

void Combination::add_reference(int input, Bytes block,
                                std::span<const MutableBytes> outputs) const {
  for (int output = 0; output < this->outputs(); ++output) {
    const Coefficient factor = coefficients_.at(output, input);
    const MutableBytes target = outputs[static_cast<std::size_t>(output)];
    for (std::size_t i = 0; i < block.size(); ++i)
      target[i] ^= static_cast<std::byte>(gf_multiply(factor, static_cast<Coefficient>(block[i])));
  }
}

}  // namespace cairn
