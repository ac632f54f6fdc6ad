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

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  // A longer name is no typing error, and the search would cost time.
  constexpr std::size_t longest = 64;
  if (name.size() > longest) return "";
  std::size_t smallest = 2 + name.size() / 4;  // a name at this distance or more is no typing error
  std::string_view nearest;
  for (const std::string_view other : candidates) {
    // The distance is at least the difference of the lengths.
    if (std::max(name.size(), other.size()) - std::min(name.size(), other.size()) >= smallest)
      continue;
    const std::size_t distance = edit_distance(name, other);
    if (distance >= smallest) continue;
    smallest = distance;
    nearest = other;
  }
  return nearest;
}

std::string did_you_mean(std::string_view key, std::span<const std::string_view> candidates) {
  const std::string_view nearest = nearest_name(key, candidates);
  if (nearest.empty()) return "; no setting has a similar name; `cairn config` lists all";
  return fmt::format("; did you mean {}?", nearest);
}

}  // namespace cairn
