#include <algorithm>
#include <numeric>
#include <vector>

#include "config/options.hpp"

namespace cairn {
namespace {

/// Bytes to insert, delete or replace to get from `a` to `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(std::string_view key, std::span<const std::string_view> candidates) {
  constexpr std::size_t longest_key = 64;  // what is longer is no typing error, and costs time
  constexpr std::string_view none = "; no setting has a name like it; `cairn config` lists all";
  if (key.size() > longest_key) return std::string(none);
  const auto distance = [key](std::string_view other) { return edit_distance(key, other); };
  const auto nearest = std::min_element(
      candidates.begin(), candidates.end(),
      [&](std::string_view a, std::string_view b) { return distance(a) < distance(b); });
  if (nearest == candidates.end() || distance(*nearest) > 1 + key.size() / 4)
    return std::string(none);
  return fmt::format("; did you mean {}?", *nearest);
}

}  // namespace cairn
