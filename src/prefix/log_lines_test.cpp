#include "prefix/log_lines.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "prefix/event_log.hpp"

namespace cairn {
namespace {

double seconds_of(const std::function<void()>& action) {
  const auto from = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
}

TEST(LogLines, ALineIsWrittenWhenTheCallReturns) {
  const auto background = make_background_thread();
  std::mutex mutex;
  std::string text;
  const auto lines =
      LogLines::start(*background, [&](const std::string& path, const std::string& more) {
        const std::scoped_lock lock(mutex);
        text += path + " " + more;
      });
  ASSERT_TRUE(lines);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(lines->add("/log", fmt::format("{}\n", i)));
    const std::scoped_lock lock(mutex);
    EXPECT_TRUE(text.ends_with(fmt::format("/log {}\n", i))) << text;
  }
}

/// The first call waits a little, the others not at all, and nothing is lost or out of order.
TEST(LogLines, NoCallWaitsLongForADirectoryThatHangs) {
  const auto background = make_background_thread();
  std::promise<void> answers;
  const std::shared_future<void> answer = answers.get_future().share();
  std::string text;
  int writes = 0;
  auto lines = LogLines::start(*background, [&](const std::string&, const std::string& more) {
    answer.wait();
    text += more;
    ++writes;
  });
  EXPECT_LT(seconds_of([&] { EXPECT_TRUE(lines->add("/log", "0\n")); }), 2);
  const double others_s = seconds_of([&] {
    for (int i = 1; i < 1000; ++i) EXPECT_TRUE(lines->add("/log", fmt::format("{}\n", i)));
  });
  EXPECT_LT(others_s, 2) << "a thousand waits would take fifty seconds";
  answers.set_value();
  lines.reset();
  std::string expected;
  for (int i = 0; i < 1000; ++i) expected += fmt::format("{}\n", i);
  EXPECT_EQ(text, expected);
  EXPECT_EQ(writes, 2) << "what waits for the same file is written at once";
}

TEST(LogLines, AfterTheDirectoryAnswersCallsWaitAgain) {
  const auto background = make_background_thread();
  std::atomic<bool> hangs = true;
  std::atomic<int> written = 0;
  const auto lines = LogLines::start(*background, [&](const std::string&, const std::string&) {
    while (hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++written;
  });
  lines->add("/log", "0\n");
  hangs = false;
  while (written < 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  lines->add("/log", "1\n");
  EXPECT_EQ(written, 2);
}

TEST(LogLines, WhatWaitsHasALimit) {
  const auto background = make_background_thread();
  std::promise<void> answers;
  const std::shared_future<void> answer = answers.get_future().share();
  auto lines =
      LogLines::start(*background, [&](const std::string&, const std::string&) { answer.wait(); });
  const std::string line(1000, 'x');
  int kept = 0;
  while (kept < 5000 && lines->add("/log", line)) ++kept;
  EXPECT_GT(kept, 1000);
  EXPECT_LT(kept, 2000);
  answers.set_value();
  lines.reset();
}

TEST(LogLines, WithoutAThreadThereIsNone) {
  const auto background = make_foreground();
  EXPECT_FALSE(LogLines::start(*background, nullptr));
}

}  // namespace
}  // namespace cairn
