// Processes that die, hang, or are not what they say. EVERY_DEATH=1: at each write, as in
// `make soak`; else at two of four.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <cstdlib>
#include <random>

#include "comm/blobs.hpp"
#include "comm/communicator_checks.hpp"
#include "comm/contact.hpp"
#include "comm/peer_processes.hpp"
#include "support/every_death.hpp"

namespace cairn {
namespace {

constexpr double noticed_within_s = 1;
/// However few processors there are for so many processes; far less than the silence of a process
/// that hangs.
constexpr double noticed_at_latest_s = 8;

enum class Over { memory, sockets, network };

PeerNetworkOptions options_for(Over over) {
  PeerNetworkOptions options;
  options.may_copy_memory = over == Over::memory;
  options.avoid_local_sockets = over == Over::network;
  return options;
}

/// checks::pattern takes most of the time of a test that is as short as these.
Blob words(int from, int to, std::size_t bytes) {
  Blob blob(bytes);
  std::uint64_t word = checks::seed_of(from, to);
  for (std::size_t at = 0; at < bytes; at += sizeof word) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(blob.data() + at, &word, std::min(sizeof word, bytes - at));
  }
  return blob;
}

/// Messages of all kinds: collectives, short ones and long ones, to ranks that are connected
/// already and to others. Then waits for a message that is never sent.
void exchange_without_end(Communicator& comm) {
  comm.barrier();
  checks::require(allreduce(comm, comm.rank(), Reduce::max) == comm.size() - 1, "max");
  for (const std::size_t bytes : {0, 100, 40 << 10, 600 << 10}) {
    for (int hop = 1; hop < comm.size(); ++hop) {
      const int to = (comm.rank() + hop) % comm.size();
      const int from = (comm.rank() + comm.size() - hop) % comm.size();
      const Blob mine = words(comm.rank(), to, bytes);
      Blob theirs(bytes);
      Request requests[] = {comm.irecv(theirs, from, 7), comm.isend(mine, to, 7)};
      wait_all(comm, requests);
      checks::require(theirs == words(from, comm.rank(), bytes), "the bytes of a message");
    }
  }
  comm.barrier();
}

enum Numbers { died_at_us, reached_end, opened };

struct KilledAt {
  int ranks;
  int victim;
  int write;     ///< the number of the write of the victim, after opening
  bool halfway;  ///< half of it is written
  Over over;
};

/// Returns false if the victim has come to its end before that write.
bool kill_at(const KilledAt& when) {
  PeerProcesses processes(when.ranks);
  processes.start([&](int rank) {
    int writes = 0;
    bool is_armed = false;
    bool is_halfway = false;
    const auto die = [&] {
      processes.number(died_at_us) = static_cast<std::int64_t>(PeerProcesses::now_s() * 1e6);
      ::raise(SIGKILL);
    };
    PeerNetworkOptions options = options_for(when.over);
    if (rank == when.victim)
      options.limit_write = [&](std::size_t bytes) {
        if (is_halfway) die();
        if (!is_armed || ++writes < when.write) return bytes;
        if (!when.halfway) die();
        is_halfway = true;
        return (bytes + 1) / 2;
      };
    const auto network = processes.open(rank, options);
    is_armed = true;
    std::string outcome = PeerProcesses::outcome_of(*network, [&](Communicator& comm) {
      exchange_without_end(comm);
      if (rank == when.victim) {
        processes.number(reached_end) = 1;
        die();
      }
      PeerProcesses::wait_for_ever(comm);
    });
    // Over a network there may be no proof of it.
    if (when.over != Over::network && network->death()) return "no death, but " + outcome;
    return outcome;
  });
  const std::vector<PeerProcesses::End> ends = processes.wait();
  const double died_at_s = static_cast<double>(processes.number(died_at_us)) / 1e6;
  for (int rank = 0; rank < when.ranks; ++rank) {
    const PeerProcesses::End& end = ends[static_cast<std::size_t>(rank)];
    const std::string where = fmt::format("rank {}, killed at write {} {}, over {}", rank,
                                          when.write, when.halfway, static_cast<int>(when.over));
    if (rank == when.victim) {
      EXPECT_TRUE(WIFSIGNALED(end.status)) << where << ": " << end.text;
      continue;
    }
    EXPECT_EQ(end.status, 0) << where;
    EXPECT_TRUE(PeerProcesses::is_failure_of(end.text, when.victim)) << where << ": " << end.text;
    EXPECT_LT(end.at_s - died_at_s, noticed_at_latest_s) << where;
  }
  return processes.number(reached_end) == 0;
}

class KilledAtEachWrite : public testing::TestWithParam<std::tuple<Over, bool>> {};

TEST_P(KilledAtEachWrite, IsNoticedByAllOthers) {
  const auto [over, halfway] = GetParam();
  int write = 1;
  while (kill_at({6, 2, write, halfway, over}) && !HasFailure())
    write += tries_every_death() || write % 4 == 1 ? 1 : 3;
  EXPECT_GT(write, 30) << "the exchange has more writes than that";
}

INSTANTIATE_TEST_SUITE_P(
    Ways, KilledAtEachWrite,
    testing::Combine(testing::Values(Over::memory, Over::sockets, Over::network), testing::Bool()));

TEST(PeerDeath, AtAnyTimeIsNoticedByAllOthers) {
  std::mt19937 random(281);
  int soon = 0;
  int late = 0;
  for (int seed = 0; seed < 40; ++seed) {
    const auto over = static_cast<Over>(random() % 3);
    const int ranks = 2 + static_cast<int>(random() % 8);
    const int victim = static_cast<int>(random() % static_cast<unsigned>(ranks));
    PeerProcesses processes(ranks);
    processes.start([&](int rank) {
      const auto network = processes.open(rank, options_for(over));
      ++processes.number(opened);
      return PeerProcesses::outcome_of(*network, [](Communicator& comm) {
        while (true) exchange_without_end(comm);
      });
    });
    while (processes.number(opened) < ranks)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60000));
    ::kill(processes.process(victim), SIGKILL);
    const double died_at_s = PeerProcesses::now_s();
    const auto ends = processes.wait();
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& end = ends[static_cast<std::size_t>(rank)];
      if (rank == victim) continue;
      EXPECT_TRUE(PeerProcesses::is_failure_of(end.text, victim))
          << "seed " << seed << ", rank " << rank << ": " << end.text;
      EXPECT_LT(end.at_s - died_at_s, noticed_at_latest_s) << "seed " << seed << ", rank " << rank;
      ++(end.at_s - died_at_s < noticed_within_s ? soon : late);
    }
  }
  EXPECT_GT(soon, 9 * late)
      << "the others notice it within a second, wherever they have a processor";
}

TEST(PeerDeath, IsNoticedByRanksThatComputeOrTalkToOthers) {
  PeerProcesses processes(9);
  processes.start([&](int rank) -> std::string {
    const auto network = processes.open(rank);
    const auto comm = network->begin(1);
    try {
      comm->barrier();
    } catch (const TransportFailed&) {
    }
    if (rank == 5) ::raise(SIGKILL);
    // They wait for nothing: the state alone shows it.
    const double until = PeerProcesses::now_s() + 5;
    while (network->failure() && PeerProcesses::now_s() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const Status failure = network->failure();
    if (network->death()) return "a death";
    return failure ? "not noticed"
                   : fmt::format("{}: {}", failure.error().rank, failure.error().text);
  });
  const auto ends = processes.wait();
  for (int rank = 0; rank < 9; ++rank) {
    if (rank == 5) continue;
    const std::string& text = ends[static_cast<std::size_t>(rank)].text;
    EXPECT_TRUE(PeerProcesses::is_failure_of(text, 5)) << text;
  }
}

TEST(PeerDeath, IsNoticedAlthoughAChildOfTheDeadKeepsItsSockets) {
  PeerProcesses processes(3);
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  processes.start_waiting({}, [&](int rank) {
    ::close(pipe_ends[1]);
    if (rank != 1) return;
    char end;
    if (::fork() == 0) ::_exit(::read(pipe_ends[0], &end, 1) == 0 ? 0 : 1);
    processes.number(died_at_us) = static_cast<std::int64_t>(PeerProcesses::now_s() * 1e6);
    ::raise(SIGKILL);
  });
  const auto ends = processes.wait();
  for (const std::size_t rank : {0, 2}) {
    EXPECT_TRUE(PeerProcesses::is_failure_of(ends[rank].text, 1)) << ends[rank].text;
    EXPECT_LT(ends[rank].at_s - static_cast<double>(processes.number(died_at_us)) / 1e6,
              noticed_at_latest_s);
  }
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

TEST(PeerDeath, OfAChildIsNone) {
  PeerProcesses processes(3);
  processes.start([&](int rank) -> std::string {
    auto network = processes.open(rank);
    const auto comm = network->begin(1);
    comm->barrier();
    if (rank == 1) {
      const pid_t child = ::fork();
      if (child == 0) {
        network.reset();
        ::_exit(0);
      }
      ::waitpid(child, nullptr, 0);
    }
    for (int i = 0; i < 20; ++i) comm->barrier();
    return network->failure() ? "fine" : network->failure().error().text;
  });
  for (const auto& end : processes.wait()) EXPECT_EQ(end.text, "fine");
}

TEST(PeerHang, IsAFailureAfterTheSilenceThatWasChosen) {
  PeerNetworkOptions options;
  options.silence = std::chrono::milliseconds(1000);
  for (const Over over : {Over::memory, Over::network}) {
    options.avoid_local_sockets = over == Over::network;
    PeerProcesses processes(4);
    processes.start_waiting(options, [](int rank) {
      if (rank == 2) ::raise(SIGSTOP);
    });
    int status = 0;
    ASSERT_EQ(::waitpid(processes.process(2), &status, WUNTRACED), processes.process(2));
    ASSERT_TRUE(WIFSTOPPED(status));
    const double stopped_at_s = PeerProcesses::now_s();
    while (PeerProcesses::now_s() < stopped_at_s + 2)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ::kill(processes.process(2), SIGCONT);
    const auto ends = processes.wait();
    for (const std::size_t rank : {0, 1, 3}) {
      EXPECT_TRUE(PeerProcesses::is_failure_of(ends[rank].text, 2)) << ends[rank].text;
      EXPECT_GT(ends[rank].at_s - stopped_at_s, 0.5);
      EXPECT_LT(ends[rank].at_s - stopped_at_s, 1.9);
    }
    // The one that was stopped learns that the others have given it up.
    EXPECT_EQ(ends[2].text.substr(0, 3), "2: ") << ends[2].text;
    EXPECT_LT(ends[2].at_s - stopped_at_s, 3.5);
  }
}

TEST(PeerHang, ForAShortTimeIsNone) {
  PeerNetworkOptions options;
  options.silence = std::chrono::milliseconds(1500);
  PeerProcesses processes(3);
  processes.start([&](int rank) {
    const auto network = processes.open(rank, options);
    const auto comm = network->begin(1);
    for (int i = 0; i < 10; ++i) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
      comm->barrier();
    }
    return std::string("fine");
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (int i = 0; i < 3; ++i) {
    ::kill(processes.process(2), SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ::kill(processes.process(2), SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  for (const auto& end : processes.wait()) EXPECT_EQ(end.text, "fine");
}

TEST(PeerHang, OfAllProcessesAtOnceIsNone) {
  PeerNetworkOptions options;
  options.silence = std::chrono::milliseconds(1000);
  PeerProcesses processes(3);
  processes.start([&](int rank) {
    const auto network = processes.open(rank, options);
    const auto comm = network->begin(1);
    ++processes.number(opened);
    for (int i = 0; i < 30; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      comm->barrier();
    }
    return std::string("fine");
  });
  while (processes.number(opened) < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (int rank = 0; rank < 3; ++rank) ::kill(processes.process(rank), SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  for (int rank = 0; rank < 3; ++rank) ::kill(processes.process(rank), SIGCONT);
  for (const auto& end : processes.wait()) EXPECT_EQ(end.text, "fine");
}

TEST(PeerEnd, WithoutFarewellOfTheOthersNamesTheRank) {
  PeerProcesses processes(3);
  processes.start([&](int rank) {
    auto network = processes.open(rank);
    return PeerProcesses::outcome_of(*network, [&](Communicator& comm) {
      comm.barrier();
      if (rank == 0) {
        network->leave();
        throw std::runtime_error("left");
      }
      try {
        PeerProcesses::wait_for_ever(comm);
      } catch (const TransportFailed&) {
        if (!network->death()) throw std::runtime_error("takes that for a death");
        throw;
      }
    });
  });
  const auto ends = processes.wait();
  EXPECT_EQ(ends[0].text, "exception: left");
  EXPECT_TRUE(PeerProcesses::is_failure_of(ends[2].text, 0)) << ends[2].text;
}

/// Ranks 0 and 3 are the only ones that run, and are not connected at first. Rank 0 misses the
/// others. Rank 3 takes the connection for open, and would call rank 0 the cause if it got no word,
/// or take its end for a death if it got no farewell: it asks when rank 0 has ended.
TEST(PeerEnd, AfterAFailureComesWhenConnectionsThatOpenHaveItsNotice) {
  enum { are_stopped, is_leaving, has_ended };
  PeerProcesses processes(6);
  const auto wait_for = [&](int which) {
    for (int ms = 0; ms < 10'000 && processes.number(which) == 0; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  processes.start([&](int rank) {
    PeerNetworkOptions options;
    if (rank == 0) options.silence = std::chrono::milliseconds(1500);
    if (rank == 3)
      options.limit_write = [&](std::size_t bytes) {
        if (processes.number(are_stopped) != 0) wait_for(is_leaving);
        return bytes;
      };
    const auto network = processes.open(rank, options);
    std::string outcome = PeerProcesses::outcome_of(*network, [&](Communicator& comm) {
      comm.barrier();
      if (rank % 3 != 0) ::raise(SIGSTOP);
      wait_for(are_stopped);
      const Blob message(1);
      Request to_rank_3;
      if (rank == 0) to_rank_3 = comm.isend(message, 3, 7);
      if (rank == 3) {
        wait_for(is_leaving);
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
      }
      PeerProcesses::wait_for_ever(comm);
    });
    if (rank == 0) {
      processes.number(is_leaving) = 1;
      network->leave(std::chrono::seconds(10));
    }
    if (rank == 3) processes.number(has_ended) = 1;
    return outcome;
  });
  for (const int rank : {1, 2, 4, 5}) ::waitpid(processes.process(rank), nullptr, WUNTRACED);
  processes.number(are_stopped) = 1;
  wait_for(has_ended);
  for (const int rank : {1, 2, 4, 5}) ::kill(processes.process(rank), SIGKILL);
  const std::string text = processes.wait()[3].text;
  EXPECT_NE(text.find("has given no sign of life for 1500 ms"), std::string::npos) << text;
}

TEST(PeerEnd, KeepsTheExitCode) {
  PeerProcesses processes(2);
  processes.start([&](int rank) -> std::string {
    static std::unique_ptr<PeerNetwork> network;
    network = processes.open(rank);
    std::exit(7 + rank);
  });
  const auto ends = processes.wait();
  EXPECT_EQ(WEXITSTATUS(ends[0].status), 7);
  EXPECT_EQ(WEXITSTATUS(ends[1].status), 8);
}

TEST(PeerEnd, WaitsNoLongerThanItMayForAThreadThatHangs) {
  PeerProcesses processes(2);
  processes.start([&](int rank) -> std::string {
    std::atomic<bool> hangs = false;
    PeerNetworkOptions options;
    options.limit_write = [&](std::size_t bytes) {
      if (hangs) std::this_thread::sleep_for(std::chrono::seconds(2));
      return bytes;
    };
    const auto network = processes.open(rank, options);
    hangs = true;
    std::thread hanging([&] { network->cancel(1, Error{Code::io, "stop", -1}); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const double begin_s = PeerProcesses::now_s();
    const bool has_ended = network->leave();
    const double took_s = PeerProcesses::now_s() - begin_s;
    hanging.join();
    if (has_ended) return "the thread that hangs has ended";
    return took_s < 0.5 ? "fine" : fmt::format("took {} s", took_s);
  });
  for (const auto& end : processes.wait()) EXPECT_EQ(end.text, "fine");
}

}  // namespace
}  // namespace cairn
