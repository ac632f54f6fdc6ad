#include "base/colour.hpp"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Colour, IsOnlyForTerminals) {
  EXPECT_TRUE(is_colour_wanted(true, nullptr, "xterm"));
  EXPECT_FALSE(is_colour_wanted(false, nullptr, "xterm"));
}

TEST(Colour, IsSwitchedOffByTheEnvironment) {
  EXPECT_FALSE(is_colour_wanted(true, "1", "xterm"));
  EXPECT_FALSE(is_colour_wanted(true, "0", "xterm")) << "any value counts";
  EXPECT_TRUE(is_colour_wanted(true, "", "xterm")) << "an empty one does not";
  EXPECT_FALSE(is_colour_wanted(true, nullptr, "dumb"));
  EXPECT_FALSE(is_colour_wanted(true, nullptr, nullptr));
}

TEST(Colour, EndsWithTheText) {
  EXPECT_EQ(coloured("failed", Colour::red), "\033[31mfailed\033[0m");
  EXPECT_EQ(coloured("note", Colour::yellow), "\033[33mnote\033[0m");
  EXPECT_EQ(coloured("good", Colour::green), "\033[32mgood\033[0m");
}

}  // namespace
}  // namespace cairn
