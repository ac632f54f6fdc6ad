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
  std::size_t smallest = 2 + key.size() / 4;  // what is as far away is not meant
  std::string_view nearest;
  for (const std::string_view other : candidates) {
    // So many bytes are inserted or deleted at least.
    if (std::max(key.size(), other.size()) - std::min(key.size(), other.size()) >= smallest)
      continue;
    const std::size_t distance = edit_distance(key, other);
    if (distance >= smallest) continue;
    smallest = distance;
    nearest = other;
  }
  return nearest.empty() ? std::string(none) : fmt::format("; did you mean {}?", nearest);
}

}  // namespace cairn
