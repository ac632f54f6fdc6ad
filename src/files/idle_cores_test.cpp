#include "files/idle_cores.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace cairn {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// Of this thread's processor time.
void compute_for(std::chrono::milliseconds time) {
  const auto now = [] {
    timespec spent{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
  };
  for (const auto end = now() + time; now() < end;) continue;
}

/// No core is idle while this lives.
class BusyCores {
 public:
  BusyCores() {
    for (unsigned i = 0; i < 2 * std::max(1U, std::thread::hardware_concurrency()); ++i)
      threads_.emplace_back([this] {
        while (!is_over_) compute_for(std::chrono::milliseconds(1));
      });
  }
  ~BusyCores() {
    is_over_ = true;
    for (std::thread& each : threads_) each.join();
  }
  BusyCores(const BusyCores&) = delete;
  BusyCores& operator=(const BusyCores&) = delete;

 private:
  std::atomic<bool> is_over_ = false;
  std::vector<std::thread> threads_;
};

/// This thread does the other tests too.
struct GivesBack {
  void operator()(IdleCores* cores) const {
    cores->give_back();
    delete cores;
  }
};
std::unique_ptr<IdleCores, GivesBack> idle_cores() {
  return std::unique_ptr<IdleCores, GivesBack>(make_idle_cores().release());
}

/// What ten pieces of work wait for together.
SteadyClock::duration waits(IdleCores& cores) {
  SteadyClock::duration waited{};
  for (int i = 0; i < 10; ++i) {
    compute_for(std::chrono::milliseconds(5));
    const auto begin = SteadyClock::now();
    cores.give_way([&] { return SteadyClock::now() - begin > std::chrono::milliseconds(200); });
    waited += SteadyClock::now() - begin;
  }
  return waited;
}

/// The kernel gives a thread of idle priority a share of some thousandths, and now and then more.
TEST(IdleCores, WorkWaitsWhileNoCoreIsIdle) {
  const auto cores = idle_cores();
  ASSERT_NE(cores, nullptr);
  const BusyCores busy;
  SteadyClock::duration longest{};
  for (int i = 0; i < 20 && longest <= std::chrono::milliseconds(150); ++i)
    longest = std::max(longest, waits(*cores));
  EXPECT_GT(longest, std::chrono::milliseconds(150));
}

TEST(IdleCores, UrgentWorkDoesNotWait) {
  const auto cores = idle_cores();
  const BusyCores busy;
  int looks = 0;
  compute_for(std::chrono::milliseconds(5));
  cores->give_way([&] { return ++looks == 3; });
  EXPECT_LE(looks, 3);
}

TEST(IdleCores, WorkGoesOnWhereACoreIsIdle) {
  const auto cores = idle_cores();
  for (int i = 0; i < 5; ++i) {
    compute_for(std::chrono::milliseconds(5));
    cores->give_way([] { return false; });  // else this never returns
  }
}

TEST(IdleCores, OnlyUrgentWorkInterruptsOtherThreads) {
  const auto cores = idle_cores();
  compute_for(std::chrono::milliseconds(5));
  std::vector<int> policies;
  cores->give_way([&] {
    policies.push_back(::sched_getscheduler(0));
    return policies.size() == 2;
  });
  ASSERT_EQ(policies.size(), 2);
  EXPECT_EQ(policies[1], SCHED_BATCH) << "while it waits";
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER) << "it has become urgent";
}

TEST(IdleCores, WorkOnAnIdleCoreInterruptsNoOtherThreadUntilItIsUrgent) {
  const auto cores = idle_cores();
  compute_for(std::chrono::milliseconds(5));
  cores->give_way([] { return false; });
  EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
  compute_for(std::chrono::milliseconds(5));
  cores->give_way([] { return true; });
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
}

TEST(IdleCores, WorkRunsOnTheIdleCoreOnlyUntilItIsUrgent) {
  const auto core_count = [] {
    cpu_set_t allowed;
    EXPECT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    return CPU_COUNT(&allowed);
  };
  const auto cores = idle_cores();
  const int all = core_count();
  for (int i = 0; i < 2; ++i) {
    compute_for(std::chrono::milliseconds(5));
    cores->give_way([] { return false; });
    EXPECT_EQ(core_count(), 1);
  }
  compute_for(std::chrono::milliseconds(5));
  cores->give_way([] { return true; });
  EXPECT_EQ(core_count(), all);
}

cpu_set_t cores_of_thread() {
  cpu_set_t allowed;
  EXPECT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  return allowed;
}

/// In a thread of its own, after its first piece.
void after_a_piece(const std::function<void(IdleCores& cores)>& then) {
  std::thread([&] {
    const auto cores = idle_cores();
    compute_for(std::chrono::milliseconds(5));
    cores->give_way([] { return false; });
    then(*cores);
  }).join();
}

TEST(IdleCores, AThreadIsGivenBackAsItWas) {
  const cpu_set_t before = cores_of_thread();
  after_a_piece([&](IdleCores& cores) {
    cores.give_back();
    const cpu_set_t now = cores_of_thread();
    EXPECT_TRUE(CPU_EQUAL(&now, &before));
    EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
  });
}

/// As a program does that binds all its threads.
TEST(IdleCores, WhereTheCoresOfTheThreadWereChangedThoseCount) {
  cpu_set_t others = cores_of_thread();
  if (CPU_COUNT(&others) < 2) GTEST_SKIP() << "there is one core only";
  after_a_piece([&](IdleCores& cores) {
    const cpu_set_t core = cores_of_thread();
    CPU_XOR(&others, &others, &core);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(others), &others), 0);
    cores.give_back();
    const cpu_set_t now = cores_of_thread();
    EXPECT_TRUE(CPU_EQUAL(&now, &others));
  });
}

TEST(IdleCores, ALittleWorkDoesNotWait) {
  const auto cores = idle_cores();
  compute_for(std::chrono::milliseconds(5));
  cores->give_way([] { return true; });
  bool is_asked = false;
  cores->give_way([&] { return is_asked = true; });
  EXPECT_FALSE(is_asked);
}

#if !defined(__SANITIZE_THREAD__)
TEST(IdleCores, AChildMadeByForkDoesNotWait) {
  const auto cores = idle_cores();
  const pid_t child = ::fork();
  if (child == 0) {
    compute_for(std::chrono::milliseconds(5));
    cores->give_way([] { return false; });
    ::_exit(7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}
#endif

}  // namespace
}  // namespace cairn
