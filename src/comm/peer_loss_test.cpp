// Connections that end although their processes live, and processes that live and do not answer.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "comm/alone.hpp"
#include "comm/peer_processes.hpp"
#include "comm/task_queue.hpp"

namespace cairn {
namespace {

using std::chrono::milliseconds;
/// After that, what is no proven death yet is none.
constexpr milliseconds longest_proof{900};

void sleep_for(milliseconds time) { std::this_thread::sleep_for(time); }

/// What breaks all connections of this process: over a network by a reset, else by their end.
void break_connections() {
  for (int each = 3; each < 256; ++each) {
    sockaddr_storage peer{};
    socklen_t bytes = sizeof peer;
    if (::getpeername(each, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) continue;
    const sockaddr nothing{AF_UNSPEC, {}};
    if (peer.ss_family == AF_UNIX)
      ::shutdown(each, SHUT_RDWR);
    else
      ::connect(each, &nothing, sizeof nothing);
  }
}

enum Counted { written_to, reset, seen, checked };

class PeerLoss : public testing::TestWithParam<bool> {
 protected:
  PeerLoss() { options.avoid_local_sockets = GetParam(); }
  PeerNetworkOptions options;
};

TEST_P(PeerLoss, UnwindsAllRanksAndIsNoDeath) {
  PeerProcesses processes(6);
  processes.start([&](int rank) -> std::string {
    const auto network = processes.open(rank, options);
    const std::string outcome = PeerProcesses::outcome_of(*network, [&](Communicator& comm) {
      comm.barrier();
      if (rank == 2) break_connections();
      PeerProcesses::wait_for_ever(comm);
    });
    sleep_for(longest_proof);
    const Status death = network->death();
    processes.meet(checked);
    return death ? outcome : "takes for dead: " + death.error().text;
  });
  for (const auto& end : processes.wait()) {
    EXPECT_EQ(end.status, 0);
    EXPECT_NE(end.text.find("has lost its connection to rank "), std::string::npos) << end.text;
    EXPECT_NE(end.text.find("rank 2 (process "), std::string::npos) << end.text;
  }
}

TEST_P(PeerLoss, DoesNotHideALaterDeath) {
  PeerProcesses processes(9);
  processes.start([&](int rank) -> std::string {
    const auto network = processes.open(rank, options);
    (void)PeerProcesses::outcome_of(*network, [&](Communicator& comm) {
      comm.barrier();
      if (rank == 1) break_connections();
      PeerProcesses::wait_for_ever(comm);
    });
    sleep_for(longest_proof);
    processes.meet(seen);
    if (rank == 5) ::raise(SIGKILL);
    for (const double until = PeerProcesses::now_s() + 5;
         rank != 1 && network->death() && PeerProcesses::now_s() < until;)
      sleep_for(milliseconds(1));
    const Status death = network->death();
    ++processes.number(checked);
    while (processes.number(checked) < 8) sleep_for(milliseconds(1));
    if (rank == 1) return death ? "without connections" : "a death";
    return death ? "none" : fmt::format("{}: {}", death.error().rank, death.error().text);
  });
  const auto ends = processes.wait();
  for (std::size_t rank = 0; rank < 9; ++rank) {
    if (rank == 5) continue;
    if (rank == 1)
      EXPECT_EQ(ends[rank].text, "without connections");
    else
      EXPECT_TRUE(PeerProcesses::is_failure_of(ends[rank].text, 5)) << ends[rank].text;
  }
}

INSTANTIATE_TEST_SUITE_P(OverTcp, PeerLoss, testing::Bool());

/// The kernel returns the error of a reset once: here, to the write.
TEST(PeerReset, IsNoDeathWhereAWriteFindsItFirst) {
  PeerProcesses processes(2);
  processes.start([&](int rank) -> std::string {
    bool is_armed = false;
    PeerNetworkOptions options;
    options.avoid_local_sockets = true;
    options.limit_write = [&](std::size_t bytes) {
      if (rank == 0 && std::exchange(is_armed, false)) {
        processes.number(written_to) = 1;
        while (processes.number(reset) == 0) sleep_for(milliseconds(1));
        sleep_for(milliseconds(20));
      }
      return bytes;
    };
    const auto network = processes.open(rank, options);
    const std::string outcome = PeerProcesses::outcome_of(*network, [&](Communicator& comm) {
      comm.barrier();
      if (rank == 0) {
        is_armed = true;
        const Request request = comm.isend({}, 1, 1);
        PeerProcesses::wait_for_ever(comm);
      }
      while (processes.number(written_to) == 0) sleep_for(milliseconds(1));
      break_connections();
      processes.number(reset) = 1;
      PeerProcesses::wait_for_ever(comm);
    });
    sleep_for(longest_proof);
    const Status death = network->death();
    processes.meet(checked);
    return death ? outcome : "takes for dead: " + death.error().text;
  });
  const auto ends = processes.wait();
  EXPECT_EQ(ends[0].text.find("1: rank 0 (process "), 0U) << ends[0].text;
  EXPECT_NE(ends[0].text.find("has lost its connection to rank 1 (process "), std::string::npos);
  EXPECT_NE(ends[0].text.find("reset"), std::string::npos) << ends[0].text;
}

/// Nine ranks meet in tasks, but one does `delays` first. Those whose task is late report that.
std::vector<std::string> reports_where(milliseconds silence, milliseconds asks_after,
                                       const std::function<void()>& delays, int late = 5) {
  PeerProcesses processes(9);
  processes.start([&](int rank) -> std::string {
    PeerNetworkOptions options;
    options.silence = silence;
    options.report = [&](const std::string& line) { processes.note(line); };
    Alone nothing;
    const auto queue = *TaskQueue::start(nothing, processes.open(rank, options));
    const TaskTicket meets =
        queue->add(nothing, "a task", [&](Communicator& comm, const std::stop_token&) -> Status {
          comm.barrier();
          // That a message is under way does not mean that the rank waits for it.
          Blob later(1);
          Request request;
          if (rank == late) request = comm.irecv(later, 6, 7);
          if (rank == late) delays();
          comm.barrier();
          if (rank == 6) send(comm, later, late, 7);
          if (rank == late) wait(comm, request);
          return {};
        });
    if (rank != late && !meets.wait(asks_after)) queue->report_late(asks_after);
    meets.wait(milliseconds(20000));
    processes.meet(checked);
    return "fine";
  });
  sleep_for(asks_after + milliseconds(800));
  ::kill(processes.process(late), SIGCONT);
  for (const auto& end : processes.wait()) EXPECT_EQ(end.text, "fine");
  return processes.notes();
}

TEST(PeerReport, NamesARankThatIsStopped) {
  const auto lines =
      reports_where(milliseconds(6000), milliseconds(3500), [] { ::raise(SIGSTOP); });
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("rank 0 has waited for 3.5")) << lines[0];
  EXPECT_NE(lines[0].find(" for background work: rank 5 (process "), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("no sign of life for "), std::string::npos) << lines[0];
}

/// Then rank 1 asks.
TEST(PeerReport, NamesRankZeroWhereThatIsStopped) {
  const auto lines = reports_where(
      milliseconds(6000), milliseconds(3500), [] { ::raise(SIGSTOP); }, 0);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("rank 1 has waited for 3.5")) << lines[0];
  EXPECT_NE(lines[0].find(" for background work: rank 0 (process "), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("no sign of life for "), std::string::npos) << lines[0];
}

TEST(PeerReport, NamesARankThatIsBusyWithFiles) {
  const auto lines =
      reports_where(milliseconds(20000), milliseconds(2000), [] { sleep_for(milliseconds(2500)); });
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find(" for background work: rank 5 (process "), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("is busy with files"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace cairn
