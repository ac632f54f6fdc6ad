#include "agreement/step_order.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cairn {
namespace {

TEST(StepOrder, OrdersDecimalNumbersByTheirValues) {
  const std::vector<std::string> ascending = {"0",    "1e-05", "0.005", "0.25", "0.3",
                                              "1000", "1001",  "20000", "3e10"};
  for (std::size_t i = 1; i < ascending.size(); ++i)
    EXPECT_LT(*number_in(ascending[i - 1]), *number_in(ascending[i])) << ascending[i];
  EXPECT_EQ(number_in("0100"), number_in("100"));
}

TEST(StepOrder, TakesNoOtherTextForANumber) {
  for (const char* text : {"", "a", "10a", "-1", "-0", "nan", "inf", " 1", "1 ", "0x10"})
    EXPECT_FALSE(number_in(text)) << text;
}

TEST(StepOrder, CountsOccurrencesOfNamesThatComeAgain) {
  StepOrder order;
  const Step a = order.step_of("a", false);
  EXPECT_EQ(order.step_of("a", false), a);  // a second file of the step
  const Step b = order.step_of("b", false);
  EXPECT_GT(b.number, a.number);
  const Step again = order.step_of("a", false);
  EXPECT_GT(again.number, b.number);
  EXPECT_EQ(again.mark, a.mark);
}

TEST(StepOrder, ANameThatIsBegunAnewIsANewStep) {
  StepOrder order;
  const Step first = order.step_of("", false);
  EXPECT_EQ(order.step_of("", false), first);
  EXPECT_GT(order.step_of("", true).number, first.number);
}

TEST(StepOrder, CountsOnFromAnEarlierRun) {
  StepOrder order;
  order.count_from(7);
  const Step first = order.step_of("", false);
  EXPECT_EQ(first.number, 8);
  order.count_from(3);
  EXPECT_EQ(order.step_of("", true).number, 9);
  EXPECT_GT(order.step_of("10", false).number, 9);
}

TEST(StepOrder, MarksNamesSoThatDifferentCountsAreFound) {
  StepOrder one;
  StepOrder other;
  one.step_of("a", false);
  const Step second = one.step_of("b", false);
  const Step skipped = other.step_of("b", false);
  EXPECT_NE(second.number, skipped.number);
  EXPECT_NE(one.step_of("a", false).mark, other.step_of("c", false).mark);
}

TEST(StepOrder, ANameAfterNumbersIsLaterThanThem) {
  StepOrder order;
  const Step number = order.step_of("1000", false);
  const Step last = order.step_of("final", false);
  EXPECT_GT(last.number, number.number);
  EXPECT_EQ(order.step_of("final", false), last);
}

TEST(StepOrder, ANameThatComesAgainAfterANumberIsLaterThanIt) {
  StepOrder order;
  order.step_of("a", false);
  const Step number = order.step_of("1000", false);
  EXPECT_GT(order.step_of("a", false).number, number.number);
}

TEST(StepOrder, AnOlderNumberDoesNotEndAStepOfNames) {
  StepOrder order;
  order.step_of("1000", false);
  const Step names = order.step_of("final", false);
  order.step_of("500", false);
  EXPECT_EQ(order.step_of("final", false), names);
}

TEST(StepOrder, ANumberThatGoesBackDoesNotMakeNamesOlder) {
  StepOrder order;
  const Step number = order.step_of("1000", false);
  order.step_of("500", false);
  EXPECT_GT(order.step_of("final", false).number, number.number);
}

}  // namespace
}  // namespace cairn
