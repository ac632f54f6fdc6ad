#include "files/background.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

namespace cairn {
namespace {

constexpr std::uint64_t much = std::uint64_t{1} << 30;
constexpr std::int64_t an_hour_us = 3'600'000'000;

TEST(Background, TasksAreDoneInOrderByTheTimeWaitReturns) {
  const auto background = make_background_thread();
  for (int round = 0; round < 100; ++round) {
    std::vector<int> done;
    for (int i = 0; i < 5; ++i) background->post(much, [&done, i] { done.push_back(i); });
    background->wait();
    ASSERT_EQ(done, (std::vector<int>{0, 1, 2, 3, 4}));
  }
}

TEST(Background, PostDoesNotWaitForTheTask) {
  std::promise<void> go;
  std::atomic<bool> done = false;
  const auto background = make_background_thread();
  background->post(much, [&] {
    go.get_future().wait();
    done = true;
  });
  EXPECT_FALSE(done);
  go.set_value();
  background->wait();
  EXPECT_TRUE(done);
}

TEST(Background, LittleIsDoneByPostUnlessMuchIsBeforeIt) {
  const auto background = make_background_thread();
  std::vector<int> done;
  background->post(1, [&] { done.push_back(1); });
  EXPECT_EQ(done, (std::vector<int>{1}));
  std::promise<void> go;
  background->post(much, [&] {
    go.get_future().wait();
    done.push_back(2);
  });
  background->post(1, [&] { done.push_back(3); });
  go.set_value();
  background->wait();
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3}));
}

TEST(Background, TheDestructorWaits) {
  std::atomic<bool> done = false;
  make_background_thread()->post(much, [&] { done = true; });
  EXPECT_TRUE(done);
}

TEST(Background, SignalsGoToTheProgramsOwnThreads) {
  bool blocked = false;
  const auto background = make_background_thread();
  background->post(much, [&] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = sigismember(&mask, SIGTERM) == 1;
  });
  background->wait();
  EXPECT_TRUE(blocked);
  std::promise<bool> is_blocked;
  const auto repeated = background->keep_working([&]() -> std::int64_t {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    is_blocked.set_value(sigismember(&mask, SIGTERM) == 1);
    return an_hour_us;
  });
  EXPECT_TRUE(is_blocked.get_future().get());
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  EXPECT_EQ(sigismember(&mine, SIGTERM), 0);
}

#if !defined(__SANITIZE_THREAD__)
TEST(Background, AChildMadeByForkWhileATaskRunsCanEnd) {
  std::promise<void> begun;
  std::promise<void> go;
  auto background = make_background_thread();
  background->post(much, [&] {
    begun.set_value();
    go.get_future().wait();
  });
  begun.get_future().wait();
  const pid_t child = ::fork();
  if (child == 0) {
    background.reset();
    ::_exit(7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  go.set_value();
}

TEST(Background, AChildMadeByForkWhileAStepRunsCanEnd) {
  std::promise<void> begun;
  std::promise<void> go;
  const auto background = make_background_thread();
  auto repeated = background->keep_working([&]() -> std::int64_t {
    begun.set_value();
    go.get_future().wait();
    return an_hour_us;
  });
  begun.get_future().wait();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    repeated.reset();
    ::_exit(7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_TRUE(WIFEXITED(status));
  go.set_value();
}
#endif

TEST(Background, SeveralThreadsShareTheWork) {
  constexpr int threads = 3;
  const auto background = make_background_thread();
  std::atomic<int> here = 0;
  std::atomic<int> left = 100;
  background->in_parallel(threads, [&] {
    ++here;
    while (here < threads) std::this_thread::yield();  // ends only if all are there at once
    while (left.fetch_sub(1) > 0) continue;
  });
  EXPECT_EQ(here, threads);
  EXPECT_EQ(left, -threads);
}

TEST(Background, AnExceptionOfOneThreadIsRethrownWhenAllHaveEnded) {
  const auto background = make_background_thread();
  std::atomic<int> ended = 0;
  std::atomic<int> number = 0;
  EXPECT_THROW(background->in_parallel(3,
                                       [&] {
                                         if (number++ == 1) throw std::bad_alloc();
                                         ++ended;
                                       }),
               std::bad_alloc);
  EXPECT_EQ(ended, 2);
}

TEST(Foreground, TheCallerDoesAllThatThreadsWouldShare) {
  int left = 5;
  make_foreground()->in_parallel(4, [&] {
    while (left > 0) --left;
  });
  EXPECT_EQ(left, 0);
}

TEST(Foreground, PostRunsTheTaskAtOnce) {
  bool done = false;
  make_foreground()->post(0, [&] { done = true; });
  EXPECT_TRUE(done);
}

TEST(Background, ARepeatedTaskRunsUntilItIsDestroyed) {
  std::atomic<int> times = 0;
  const auto background = make_background_thread();
  auto repeated = background->repeat(1'000, [&] { ++times; });
  ASSERT_NE(repeated, nullptr);
  while (times < 3) std::this_thread::yield();
  repeated.reset();
  const int at_the_end = times;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(times, at_the_end);
}

TEST(Background, ARepetitionEndsWithoutWaitingForItsPeriod) {
  const auto from = std::chrono::steady_clock::now();
  const auto background = make_background_thread();
  background->repeat(an_hour_us, [] {}).reset();
  EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::minutes(1));
}

/// It holds its thread back as busy cores hold back one of idle priority.
struct EndsLate {
  ~EndsLate() {
    if (gate.valid()) gate.wait();
    has_ended = true;
    has_ended.notify_all();
  }
  std::shared_future<void> gate;
  static std::atomic<bool> has_ended;
};
std::atomic<bool> EndsLate::has_ended = false;

TEST(Background, ARepetitionEndsWithoutWaitingForItsThread) {
  std::promise<void> go;
  std::promise<void> was_called;
  const auto background = make_background_thread();
  auto repeated =
      background->keep_stepping([gate = go.get_future().share(), &was_called]() -> std::int64_t {
        thread_local EndsLate of_this_thread;
        if (!of_this_thread.gate.valid()) was_called.set_value();
        of_this_thread.gate = gate;
        return an_hour_us;
      });
  was_called.get_future().wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it sleeps by now
  repeated = nullptr;
  EXPECT_FALSE(EndsLate::has_ended);
  go.set_value();
  EndsLate::has_ended.wait(false);
}

TEST(Background, AStepIsTakenWhenItsPauseIsOver) {
  std::atomic<int> steps = 0;
  std::atomic<int> beats = 0;
  const auto background = make_background_thread();
  const auto repeated = background->keep_working([&]() -> std::int64_t {
    ++steps;
    return an_hour_us;
  });
  const auto heart = background->repeat(an_hour_us, [&] { ++beats; });
  while (steps == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(beats, 0);
}

TEST(Background, TheEndOfARepetitionWaitsForTheStepThatIsRunning) {
  std::promise<void> began;
  std::atomic<bool> is_done = false;
  const auto background = make_background_thread();
  auto repeated = background->keep_working([&]() -> std::int64_t {
    if (is_done) return 1'000'000;
    began.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    is_done = true;
    return 1'000'000;
  });
  began.get_future().wait();
  repeated = nullptr;
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace cairn
