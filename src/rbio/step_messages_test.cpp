#include "rbio/step_messages.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace cairn::rbio {
namespace {

class FakeMessage final : public PendingMessage {
 public:
  explicit FakeMessage(const bool& is_complete) : is_complete_(is_complete) {}
  bool test() override { return is_complete_; }

 private:
  const bool& is_complete_;
};

std::vector<Request> one(const bool& is_complete) {
  std::vector<Request> requests;
  requests.push_back(std::make_unique<FakeMessage>(is_complete));
  return requests;
}

TEST(StepMessages, StepsAreCompleteInTheirOrder) {
  bool first = false, second = true;
  std::vector<int> calls;
  StepMessages messages;
  messages.add(one(first), [&] { calls.push_back(1); });
  messages.add(one(second), [&] { calls.push_back(2); });
  messages.progress();
  EXPECT_EQ(messages.completed(), 0U);
  first = true;
  messages.progress();
  EXPECT_EQ(calls, (std::vector<int>{1, 2}));
  EXPECT_EQ(messages.completed(), 2U);
  EXPECT_TRUE(messages.is_empty());
}

TEST(StepMessages, WhatIsLeftBehindKeepsItsMemory) {
  static const bool never = false;
  auto memory = std::make_shared<int>(7);
  const std::weak_ptr<int> watched = memory;
  {
    StepMessages messages;
    messages.add(one(never), [kept = std::move(memory)] {});
    messages.leave_behind();
    EXPECT_TRUE(messages.is_empty());
  }
  EXPECT_FALSE(watched.expired());
}

}  // namespace
}  // namespace cairn::rbio
