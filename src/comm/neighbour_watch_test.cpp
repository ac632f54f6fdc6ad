#include "comm/neighbour_watch.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "comm/alone.hpp"

namespace cairn {
namespace {

/// Rank 0 of two, of which rank 1 is another process.
class TwoRanks final : public Communicator {
 public:
  explicit TwoRanks(pid_t other) : other_(other) {}

  int rank() const override { return 0; }
  int size() const override { return 2; }
  Request isend(Bytes, int, int) override { return nullptr; }
  Request irecv(MutableBytes, int, int) override { return nullptr; }
  void idle() override {}
  /// The other one says the same, but for its process id.
  void allgather(Bytes mine, MutableBytes all) override {
    const auto id = static_cast<std::int64_t>(other_);
    std::memcpy(all.data(), mine.data(), mine.size());
    std::memcpy(all.data() + mine.size(), mine.data(), mine.size());
    std::memcpy(all.data() + 2 * mine.size() - sizeof id, &id, sizeof id);
  }

 private:
  const pid_t other_;
};

Status wait_for_failure(NeighbourWatch& watch, std::chrono::seconds at_most) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  Status found;
  while (found && std::chrono::steady_clock::now() < end) {
    found = watch.failure();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return found;
}

TEST(NeighbourWatch, NamesTheRankThatWasKilled) {
  const pid_t child = ::fork();
  if (child == 0)
    while (true) ::pause();
  TwoRanks comm(child);
  NeighbourWatch watch(comm, "n1");
  EXPECT_TRUE(wait_for_failure(watch, std::chrono::seconds(1))) << "it lives";
  ::kill(child, SIGKILL);  // and stays as a zombie, as a child of a launcher that does not look
  const Status gone = wait_for_failure(watch, std::chrono::seconds(20));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().rank, 1);
  EXPECT_EQ(gone.error().text, fmt::format("rank 1 (process {} on n1) has ended", child));
  ::waitpid(child, nullptr, 0);
}

TEST(NeighbourWatch, ARankAloneWatchesNothing) {
  Alone comm;
  NeighbourWatch watch(comm, "n1");
  EXPECT_TRUE(watch.failure());
}

}  // namespace
}  // namespace cairn
