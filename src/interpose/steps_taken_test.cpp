#include "interpose/steps_taken.hpp"

#include <gtest/gtest.h>

namespace cairn::interpose {
namespace {

/// Of a process that has begun these steps when a rank is lost.
class StepsTakenTest : public testing::Test {
 protected:
  bool takes_after(std::initializer_list<const char*> begun, const char* step) {
    StepsTaken steps;
    for (const char* one : begun) EXPECT_TRUE(steps.take(one)) << one;
    steps.take_no_new_ones();
    EXPECT_FALSE(steps.takes_new_ones());
    const bool takes = steps.take(step);
    EXPECT_EQ(steps.take(step), takes) << "no other step is being written since";
    return takes;
  }
};

TEST_F(StepsTakenTest, OnlyTheStepThatIsBeingWrittenGoesOn) {
  EXPECT_TRUE(takes_after({"3", "4"}, "4"));
  EXPECT_FALSE(takes_after({"3", "4"}, "3"));
  EXPECT_FALSE(takes_after({"3", "4"}, "5"));
  EXPECT_FALSE(takes_after({}, "1"));
}

TEST_F(StepsTakenTest, EveryNumberThatAProgramWritesIsOne) {
  for (const char* step : {"0", "0.25", ".5", "1e-05", "1E+3", "0010"})
    EXPECT_TRUE(takes_after({step}, step)) << step;
}

TEST_F(StepsTakenTest, NamesThatComeAgainInEachStepEnd) {
  for (const char* step : {"", "a", "2a", ".", "e5"})
    EXPECT_FALSE(takes_after({step}, step)) << step;
}

TEST_F(StepsTakenTest, ANameThatComesAgainDoesNotEndTheStep) {
  EXPECT_TRUE(takes_after({"4", ""}, "4"));
  EXPECT_FALSE(takes_after({"4", "a"}, "a"));
}

}  // namespace
}  // namespace cairn::interpose
