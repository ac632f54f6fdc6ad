// Which bytes of something are there.
#pragma once

#include <cstdint>
#include <vector>

namespace cairn {

struct Range {
  std::uint64_t begin = 0, end = 0;
  bool operator==(const Range&) const = default;
};

/// Sorted, none touches the next.
class Ranges {
 public:
  void add(Range range);
  /// The next add() needs no memory then.
  void make_room();
  /// Forgets all from `end` on.
  void cut(std::uint64_t end);
  /// Where the range ends that holds `at`; `at` if none does.
  std::uint64_t covered_to(std::uint64_t at) const;

  bool empty() const { return ranges_.empty(); }
  std::uint64_t begin() const { return ranges_.front().begin; }
  std::uint64_t end() const { return ranges_.back().end; }
  const std::vector<Range>& all() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

}  // namespace cairn
