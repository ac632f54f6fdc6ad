// The markers of a flush show that all parts are done when they are, whichever process dies in
// between.
#include <atomic>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include "prefix/flush_plan.hpp"
#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

class Markers : public ::testing::Test {
 protected:
  static constexpr std::array<int, 9> sizes = {1, 2, 3, 4, 5, 7, 8, 17, 64};

  void begin() {
    fs::remove_all(DatasetFolder::markers(base_.path()));
    fs::create_directories(DatasetFolder::markers(base_.path()));
  }

  Result<bool> finish(Files& files, int rank, int of) {
    DoneMarkers markers(files, base_.path(), static_cast<std::uint32_t>(of));
    CAIRN_TRY(markers.mark(rank));
    return markers.climb(rank);
  }

  static std::vector<int> in_some_order(int of, unsigned seed) {
    std::vector<int> order(static_cast<std::size_t>(of));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    return order;
  }

  TemporaryFolder base_{"/dev/shm"};
  std::unique_ptr<Files> posix_ = make_posix_files();
};

TEST_F(Markers, TheLastToComeKnowsItAndNoneBefore) {
  for (const int of : sizes)
    for (unsigned seed = 0; seed < 20; ++seed) {
      begin();
      const std::vector<int> order = in_some_order(of, seed);
      for (const int rank : order)
        ASSERT_EQ(finish(*posix_, rank, of).value(), rank == order.back()) << rank << " of " << of;
    }
}

TEST_F(Markers, OfProcessesThatComeAtOnceOneKnowsIt) {
  constexpr int of = 8;
  for (int round = 0; round < 200; ++round) {
    begin();
    std::atomic<int> there = 0;
    std::atomic<int> knowing = 0;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < of; ++rank)
      threads.emplace_back([&, rank] {
        ++there;
        while (there < of) std::this_thread::yield();
        knowing += finish(*posix_, rank, of).value() ? 1 : 0;
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_GE(knowing, 1) << round;
  }
}

TEST_F(Markers, OperationsGrowWithTheRanks) {
  for (const int of : {64, 512, 4096}) {
    begin();
    int all = 0;
    int of_one = 0;
    const auto counted = make_hooked_files(*posix_, [&](const FileOperation&) {
      ++all, ++of_one;
      return Status{};
    });
    int most = 0;
    for (const int rank : in_some_order(of, 1)) {
      of_one = 0;
      ASSERT_TRUE(finish(*counted, rank, of));
      most = std::max(most, of_one);
    }
    EXPECT_LE(all, 4 * of);
    EXPECT_LE(most, 1 + 2 * static_cast<int>(std::log2(of)));
  }
}

/// A process is stopped at any step: once all have tried again, one of them knows.
TEST_F(Markers, ACrashAtAnyStepLosesNothing) {
  constexpr int of = 5;
  bool crashed = true;
  for (std::uint64_t step = 0; crashed; ++step) {
    begin();
    crashed = false;
    const auto mortal = make_hooked_files(*posix_, [&](const FileOperation& operation) -> Status {
      if (operation.index == step) throw Crash{};
      return {};
    });
    bool known = false;
    for (int rank = 0; rank < of; ++rank) try {
        known = finish(*mortal, rank, of).value() || known;
      } catch (const Crash&) {
        crashed = true;
      }
    for (int rank = 0; rank < of && crashed; ++rank)
      known = finish(*posix_, rank, of).value() || known;
    ASSERT_TRUE(known) << step;
  }
}

TEST_F(Markers, EachTakesHisOwnAwayAndNoneIsLeft) {
  for (const int of : sizes) {
    begin();
    for (int rank = 0; rank < of; ++rank) ASSERT_TRUE(finish(*posix_, rank, of));
    for (int rank = 0; rank < of; ++rank)
      ASSERT_TRUE(DoneMarkers(*posix_, base_.path(), static_cast<std::uint32_t>(of)).remove(rank));
    EXPECT_TRUE(fs::is_empty(DatasetFolder::markers(base_.path()))) << of;
  }
}

}  // namespace
}  // namespace cairn
