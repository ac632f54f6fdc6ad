#include "interpose/patterns.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace cairn::interpose {
namespace {

std::string step_in(const std::string& expression, std::string_view name) {
  Patterns patterns;
  EXPECT_EQ(patterns.add(expression), "");
  const Match match = patterns.find(name);
  return match ? std::string(match.step) : "no match";
}

TEST(Patterns, FindTheStepInTheNamesOfKnownPrograms) {
  EXPECT_EQ(step_in(R"(restart\.(?<step>\d+)\.\d+$)", "run/restart.1000.17"), "1000");
  EXPECT_EQ(step_in(R"(^processor\d+/(?<step>[\d.]+)/\w+$)", "processor3/0.25/U"), "0.25");
  EXPECT_EQ(step_in(R"(ckpt_(?<step>\d+)\.h5)", "out/ckpt_00042.h5"), "00042");
}

TEST(Patterns, MatchWithoutAStep) {
  EXPECT_EQ(step_in(R"(restart\.[ab]$)", "restart.a"), "");
  EXPECT_EQ(step_in(R"(restart(\.(?<step>\d+))?$)", "restart"), "");
}

TEST(Patterns, ANameWithoutTheRankThatThePatternNamesIsOfAllRanks) {
  Patterns patterns;
  ASSERT_EQ(patterns.add(R"(rest\.(?<step>\d+)\.((?<rank>\d+)|base)$)"), "");
  EXPECT_FALSE(patterns.find("rest.100.3").is_shared);
  EXPECT_TRUE(patterns.find("rest.100.base").is_shared);
  EXPECT_EQ(patterns.find("rest.100.base").step, "100");
  Patterns without;
  ASSERT_EQ(without.add(R"(rest\.(?<step>\d+)\.(\d+|base)$)"), "");
  EXPECT_FALSE(without.find("rest.100.base").is_shared);
}

TEST(Patterns, DoNotMatchOtherNames) {
  EXPECT_EQ(step_in(R"(restart\.(?<step>\d+)$)", "restart.1000.tmp"), "no match");
  EXPECT_EQ(step_in(R"(^restart)", "run/restart"), "no match");
}

TEST(Patterns, TheFirstThatMatchesIsTaken) {
  Patterns patterns;
  ASSERT_EQ(patterns.add("^b"), "");
  ASSERT_EQ(patterns.add("a(?<step>.)"), "");
  ASSERT_EQ(patterns.add("a"), "");
  EXPECT_EQ(patterns.find("xay").pattern, 1);
  EXPECT_EQ(patterns.find("xay").step, "y");
  EXPECT_EQ(patterns.find("ba1").pattern, 0);
  EXPECT_FALSE(patterns.find("xyz"));
}

TEST(Patterns, AWrongOneIsNamedWithThePlaceOfTheMistake) {
  Patterns patterns;
  const std::string error = patterns.add("restart.(");
  EXPECT_NE(error.find("'restart.('"), std::string::npos);
  EXPECT_NE(error.find("10"), std::string::npos);
  EXPECT_TRUE(patterns.empty());
}

TEST(Patterns, OneThatTriesTooManyWaysMatchesNothing) {
  EXPECT_EQ(step_in("(a+)+$", std::string(200, 'a') + "b"), "no match");
}

TEST(Patterns, ThoseOfScrAreForRanks) {
  const auto takes = [](std::string_view list, int rank, std::string_view name) {
    Patterns patterns;
    EXPECT_EQ(patterns.add_of_scr(list, ",", rank), "");
    return static_cast<bool>(patterns.find(name));
  };
  EXPECT_TRUE(takes("0-3:ckpt[0-9]+,4-N:state", 2, "run/ckpt12"));
  EXPECT_FALSE(takes("0-3:ckpt[0-9]+,4-N:state", 2, "state"));
  EXPECT_FALSE(takes("0-3:ckpt[0-9]+,4-N:state", 4, "ckpt12"));
  EXPECT_TRUE(takes("0-3:ckpt[0-9]+,4-N:state", 400, "state"));
  EXPECT_TRUE(takes("0-0:^root|^header", 0, "header"));
  EXPECT_FALSE(takes("0-0:^root|^header", 1, "header"));
  EXPECT_TRUE(takes("ckpt", 7, "ckpt"));
  EXPECT_TRUE(takes("[[:digit:]]{3}$", 0, "a123"));
}

TEST(Patterns, NamesOfScrItselfAreNeverTaken) {
  Patterns patterns;
  ASSERT_EQ(patterns.add_of_scr("0-N:ckpt", ",", 0), "");
  EXPECT_FALSE(patterns.find("ckpt.0.scr"));
  EXPECT_TRUE(patterns.find("ckpt.0.scratch"));
}

TEST(Patterns, AnotherTokenSeparatesThoseOfScr) {
  Patterns patterns;
  ASSERT_EQ(patterns.add_of_scr("0-N:a{1,2};1-1:b", ";", 1), "");
  EXPECT_TRUE(patterns.find("aa"));
  EXPECT_TRUE(patterns.find("b"));
}

TEST(Patterns, ManyThreadsSearchAtOnce) {
  Patterns patterns;
  ASSERT_EQ(patterns.add(R"(restart\.(?<step>\d+)\.\d+$)"), "");
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 40; ++t) {  // more than there are workspaces
    threads.emplace_back([&, t] {
      const std::string step = std::to_string(t);
      const std::string name = "restart." + step + ".1";
      for (int i = 0; i < 2000; ++i) wrong += patterns.find(name).step == step ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cairn::interpose
