// Repeatable random numbers.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace cairn::sim {

/// The same seed gives the same sequence on every machine (the standard library's distributions do
/// not). Good enough to choose with, and for nothing else.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
  }
  /// From 0 to limit - 1; the slight preference for small numbers does not matter here.
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }
  int between(int low, int high) {
    return low + static_cast<int>(below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool one_in(std::uint64_t times) { return below(times) == 0; }
  /// Small numbers as likely as large ones: first below 1, below 2, below 4... below `limit`.
  std::uint64_t of_any_size_below(std::uint64_t limit) {
    std::uint64_t range = 1;
    while (range < limit && !one_in(8)) range *= 2;
    return below(range < limit ? range : limit);
  }

  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }
  /// An independent sequence.
  Chance fork() { return Chance(next()); }

 private:
  std::uint64_t state_;
};

}  // namespace cairn::sim
