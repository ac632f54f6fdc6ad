// A set of byte ranges.
#pragma once

#include <cstdint>
#include <vector>

namespace cairn {

struct Range {
  std::uint64_t begin = 0, end = 0;
  bool operator==(const Range&) const = default;
};

/// Sorted; no range touches the next.
class Ranges {
 public:
  void add(Range range);
  /// Afterwards the next add() allocates nothing.
  void make_room();
  /// Removes everything from `end` on.
  void cut(std::uint64_t end);
  /// The end of the range that contains `at`; `at` if none does.
  std::uint64_t covered_to(std::uint64_t at) const;

  bool empty() const { return ranges_.empty(); }
  std::uint64_t begin() const { return ranges_.front().begin; }
  std::uint64_t end() const { return ranges_.back().end; }
  const std::vector<Range>& all() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

}  // namespace cairn
