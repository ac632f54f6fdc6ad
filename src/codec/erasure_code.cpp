#include "codec/erasure_code.hpp"

#include <algorithm>
#include <cassert>

namespace cairn {
namespace {

GfMatrix make_generator(int data, int parity) {
  GfMatrix generator(parity, data);
  if (data == 1) {
    std::fill(generator.values.begin(), generator.values.end(), Coefficient{1});  // copies
    return generator;
  }
  // Cauchy: 1 / (x_i + y_j) with all x and y distinct. Scaling columns keeps every square submatrix
  // regular.
  const auto cauchy = [data](int row, int column) {
    return gf_inverse(static_cast<Coefficient>((data + row) ^ column));
  };
  for (int row = 0; row < parity; ++row)
    for (int column = 0; column < data; ++column)
      generator.at(row, column) = gf_multiply(cauchy(row, column), gf_inverse(cauchy(0, column)));
  return generator;
}

bool contains(const std::vector<int>& slots, int slot) {
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

/// The submatrix of these rows and columns, in their order.
GfMatrix pick(const GfMatrix& matrix, const std::vector<int>& rows,
              const std::vector<int>& columns) {
  GfMatrix part(static_cast<int>(rows.size()), static_cast<int>(columns.size()));
  for (int row = 0; row < part.rows; ++row)
    for (int column = 0; column < part.columns; ++column)
      part.at(row, column) =
          matrix.at(rows[static_cast<std::size_t>(row)], columns[static_cast<std::size_t>(column)]);
  return part;
}

}  // namespace

ErasureCode::ErasureCode(int data, int parity) : generator_(make_generator(data, parity)) {
  assert(data >= 1 && parity >= 0 && data + parity <= 256);
}

StripeRepair ErasureCode::repair(const std::vector<int>& lost) const {
  assert(static_cast<int>(lost.size()) <= parity());
  std::vector<int> lost_data;
  std::vector<int> lost_parity;
  std::vector<int> kept_data;
  std::vector<int> used_parity;
  for (int slot = 0; slot < data() + parity(); ++slot) {
    const bool is_lost = contains(lost, slot);
    if (slot < data())
      (is_lost ? lost_data : kept_data).push_back(slot);
    else if (is_lost)
      lost_parity.push_back(slot - data());
    else if (used_parity.size() < lost_data.size())
      used_parity.push_back(slot - data());
  }
  // used parity = U * kept + L * lost, so lost = 1/L * (used parity + U * kept), as + is - here.
  const int kept = static_cast<int>(kept_data.size());
  const int used = static_cast<int>(used_parity.size());
  const GfMatrix solve = inverse(pick(generator_, used_parity, lost_data));
  const GfMatrix from_kept = solve * pick(generator_, used_parity, kept_data);
  GfMatrix rebuild(used, kept + used);
  for (int row = 0; row < used; ++row) {
    for (int i = 0; i < kept; ++i) rebuild.at(row, i) = from_kept.at(row, i);
    for (int i = 0; i < used; ++i) rebuild.at(row, kept + i) = solve.at(row, i);
  }
  // Lost parity is computed from kept and rebuilt data.
  const GfMatrix through_lost = pick(generator_, lost_parity, lost_data) * rebuild;
  GfMatrix all(used + static_cast<int>(lost_parity.size()), kept + used);
  std::copy(rebuild.values.begin(), rebuild.values.end(), all.values.begin());
  for (int row = 0; row < through_lost.rows; ++row)
    for (int i = 0; i < all.columns; ++i)
      all.at(used + row, i) = through_lost.at(row, i) ^
                              (i < kept ? generator_.at(lost_parity[static_cast<std::size_t>(row)],
                                                        kept_data[static_cast<std::size_t>(i)])
                                        : Coefficient{0});

  StripeRepair plan{kept_data, lost_data, Combination(std::move(all))};
  for (const int parity_row : used_parity) plan.sources.push_back(data() + parity_row);
  for (const int parity_row : lost_parity) plan.targets.push_back(data() + parity_row);
  return plan;
}

}  // namespace cairn
