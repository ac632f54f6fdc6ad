#include "aggregate/ranges.hpp"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

namespace cairn {
namespace {

constexpr std::size_t bytes = 64;

std::bitset<bytes> bits(const Ranges& ranges) {
  std::bitset<bytes> set;
  for (const Range& range : ranges.all())
    for (std::uint64_t at = range.begin; at < range.end; ++at) set.set(at);
  return set;
}

/// The ranges as one that knows each byte has them.
std::vector<Range> as_ranges(const std::bitset<bytes>& set) {
  std::vector<Range> ranges;
  for (std::uint64_t at = 0; at < bytes; ++at) {
    if (!set.test(at)) continue;
    if (ranges.empty() || ranges.back().end != at) ranges.push_back({at, at});
    ranges.back().end = at + 1;
  }
  return ranges;
}

TEST(Ranges, AreThoseOfAModelThatKnowsEachByte) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    Ranges ranges;
    std::bitset<bytes> model;
    for (int step = 0; step < 20; ++step) {
      const std::uint64_t begin = random() % bytes;
      const std::uint64_t end = begin + 1 + random() % std::min<std::uint64_t>(9, bytes - begin);
      if (random() % 8 == 0) {
        ranges.cut(begin);
        for (std::uint64_t at = begin; at < bytes; ++at) model.reset(at);
      } else {
        ranges.add({begin, end});
        for (std::uint64_t at = begin; at < end; ++at) model.set(at);
      }
      ASSERT_EQ(ranges.all(), as_ranges(model)) << "round " << round << ", step " << step;
      ASSERT_EQ(bits(ranges), model);
      for (std::uint64_t at = 0; at < bytes; ++at) {
        std::uint64_t to = at;
        while (to < bytes && model.test(to)) ++to;
        ASSERT_EQ(ranges.covered_to(at), to);
      }
    }
  }
}

}  // namespace
}  // namespace cairn
