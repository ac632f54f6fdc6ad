#include "aggregate/ranges.hpp"

#include <algorithm>

namespace cairn {

void Ranges::add(Range range) {
  if (!ranges_.empty() && ranges_.back().end == range.begin) {
    ranges_.back().end = range.end;
    return;
  }
  const auto first = std::partition_point(ranges_.begin(), ranges_.end(),
                                          [&](const Range& of) { return of.end < range.begin; });
  const auto last = std::partition_point(first, ranges_.end(),
                                         [&](const Range& of) { return of.begin <= range.end; });
  if (first == last) {
    ranges_.insert(first, range);
    return;
  }
  first->begin = std::min(first->begin, range.begin);
  first->end = std::max(std::prev(last)->end, range.end);
  ranges_.erase(std::next(first), last);
}

void Ranges::make_room() {
  if (ranges_.size() == ranges_.capacity()) ranges_.reserve(2 * ranges_.size() + 4);
}

void Ranges::cut(std::uint64_t end) {
  while (!ranges_.empty() && ranges_.back().begin >= end) ranges_.pop_back();
  if (!ranges_.empty()) ranges_.back().end = std::min(ranges_.back().end, end);
}

std::uint64_t Ranges::covered_to(std::uint64_t at) const {
  const auto found = std::partition_point(ranges_.begin(), ranges_.end(),
                                          [&](const Range& of) { return of.end <= at; });
  return found == ranges_.end() || found->begin > at ? at : found->end;
}

}  // namespace cairn
