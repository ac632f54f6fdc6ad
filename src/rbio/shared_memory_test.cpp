#include "rbio/shared_memory.hpp"

#include <gtest/gtest.h>
#include <sys/time.h>

#include <csignal>

namespace cairn::rbio {
namespace {

volatile std::sig_atomic_t interruptions = 0;

/// As a profiler: a signal each 10 ms of processor time.
class ProfilingTimer {
 public:
  ProfilingTimer() {
    struct sigaction counting = {};
    counting.sa_handler = [](int) { interruptions = interruptions + 1; };
    counting.sa_flags = SA_RESTART;
    EXPECT_EQ(::sigaction(SIGPROF, &counting, &before_), 0);
    set({0, 10'000});
  }
  ~ProfilingTimer() {
    set({0, 0});
    ::sigaction(SIGPROF, &before_, nullptr);
  }
  ProfilingTimer(const ProfilingTimer&) = delete;
  ProfilingTimer& operator=(const ProfilingTimer&) = delete;

 private:
  static void set(const timeval& interval) {
    const itimerval timer = {interval, interval};
    EXPECT_EQ(::setitimer(ITIMER_PROF, &timer, nullptr), 0);
  }

  struct sigaction before_ = {};
};

/// Newer kernels do not interrupt what is tested here; on older ones it needs pieces.
TEST(SharedMemory, ALargeSegmentIsMadeAlsoUnderAProfiler) {
  constexpr std::uint64_t bytes = (std::uint64_t{256} << 20) + 1;
  const auto memory = make_shared_memory();
  const ProfilingTimer timer;
  interruptions = 0;
  while (interruptions == 0) {
    const auto segment = memory->create(bytes);
    ASSERT_TRUE(segment) << segment.error().text;
    EXPECT_EQ((*segment)->bytes().size(), bytes);
    (*segment)->bytes().back() = std::byte{1};
  }
}

}  // namespace
}  // namespace cairn::rbio
