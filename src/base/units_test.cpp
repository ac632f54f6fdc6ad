#include "base/units.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Units, ParsesSizes) {
  EXPECT_EQ(*parse_bytes("0"), 0U);
  EXPECT_EQ(*parse_bytes("4096"), 4096U);
  EXPECT_EQ(*parse_bytes("64kb"), 65536U);
  EXPECT_EQ(*parse_bytes(" 1 GiB "), 1ULL << 30);
  EXPECT_EQ(*parse_bytes("2T"), 2ULL << 40);
}

TEST(Units, FailsOnOtherText) {
  for (const char* text : {"", "MB", "-1", "1.5GB", "10 apples", "1KBB", "99999999E"}) {
    const auto size = parse_bytes(text);
    ASSERT_FALSE(size) << text;
    EXPECT_NE(size.error().text.find(text), std::string::npos);
  }
}

TEST(Units, FormatsForPeople) {
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(64ULL << 20), "64 MiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_seconds(0.0123), "12.3 ms");
  EXPECT_EQ(format_seconds(2), "2 s");
  EXPECT_EQ(format_seconds(0.00005), "50 us");
}

TEST(Units, NamesTheFirstOfMany) {
  EXPECT_EQ(format_first({"a", "b"}, 2), "a, b");
  EXPECT_EQ(format_first({"a", "b"}, 5), "a, b and 3 more");
  const std::string many = format_first(std::vector<std::string>(100, "x"), 100);
  EXPECT_EQ(std::count(many.begin(), many.end(), 'x'), 16) << many;
  EXPECT_TRUE(many.ends_with("x and 84 more")) << many;
}

TEST(Units, RanksAreNamedAsRanges) {
  EXPECT_EQ(format_ranks({3}), "rank 3");
  EXPECT_EQ(format_ranks({0, 1, 2, 5, 7, 8}), "ranks 0-2, 5, 7-8");
  std::vector<int> even;
  for (int rank = 0; rank < 100; rank += 2) even.push_back(rank);
  const std::string text = format_ranks(even);
  EXPECT_TRUE(text.starts_with("ranks 0, 2, ")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), ','), 16) << text;
  EXPECT_TRUE(text.ends_with("50 in all")) << text;
}

}  // namespace
}  // namespace cairn
