#include "comm/team.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace cairn {
namespace {

using Mode = Team::Mode;

class TeamInBothModes : public testing::TestWithParam<Mode> {};

INSTANTIATE_TEST_SUITE_P(Modes, TeamInBothModes, testing::Values(Mode::buffered, Mode::rendezvous));

void swap_badly(Communicator& comm) {
  int value = comm.rank();
  send(comm, bytes_of(value), 1 - comm.rank(), 0);
  recv(comm, mutable_bytes_of(value), 1 - comm.rank(), 0);
  if (value != 1 - comm.rank()) throw std::runtime_error("wrong value");
}

TEST(Team, BuffersHideADeadlockThatRendezvousShows) {
  EXPECT_NO_THROW(Team(2, Mode::buffered).run(swap_badly));
  EXPECT_THROW(Team(2, Mode::rendezvous).run(swap_badly), TeamDeadlock);
}

TEST(Team, ASendToARankThatHasEndedIsADeadlock) {
  Team team(3);
  EXPECT_THROW(team.run([](Communicator& comm) {
    if (comm.rank() == 0) send(comm, {}, 1, 0);
  }),
               TeamDeadlock);
}

TEST(Team, RendezvousCompletesWhenReceived) {
  Team(2).run([](Communicator& comm) {
    int value = 5;
    if (comm.rank() == 0) {
      Request request = comm.isend(bytes_of(value), 1, 0);
      EXPECT_FALSE(request->test());
      comm.barrier();
      wait(comm, request);
    } else {
      value = 0;
      comm.barrier();
      recv(comm, mutable_bytes_of(value), 0, 0);
      EXPECT_EQ(value, 5);
    }
  });
}

TEST(Team, BufferedSendCompletesAtOnceAndCopies) {
  Team(2, Mode::buffered).run([](Communicator& comm) {
    int value = 5;
    if (comm.rank() == 0) {
      EXPECT_TRUE(comm.isend(bytes_of(value), 1, 0)->test());
      value = 6;
      comm.barrier();
    } else {
      comm.barrier();
      recv(comm, mutable_bytes_of(value), 0, 0);
      EXPECT_EQ(value, 5);
    }
  });
}

TEST(Team, AWaitingRankSleeps) {
  Team(2).run([](Communicator& comm) {
    if (comm.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    comm.barrier();
    rusage used{};
    getrusage(RUSAGE_THREAD, &used);
    EXPECT_LT(used.ru_utime.tv_usec + used.ru_stime.tv_usec, 150000);
    EXPECT_EQ(used.ru_utime.tv_sec + used.ru_stime.tv_sec, 0);
  });
}

TEST_P(TeamInBothModes, TheFirstExceptionStopsAllAndIsRethrown) {
  Team team(6, GetParam());
  std::atomic<int> stopped = 0;
  try {
    team.run([&](Communicator& comm) {
      try {
        comm.barrier();
        if (comm.rank() == 4) throw std::runtime_error("boom");
        comm.barrier();
      } catch (const TeamStopped&) {
        ++stopped;
        EXPECT_THROW(comm.idle(), TeamStopped);
        EXPECT_THROW(comm.isend({}, 0, 0), TeamStopped);
        EXPECT_THROW(comm.irecv({}, 0, 0), TeamStopped);
        throw;
      }
    });
    ADD_FAILURE() << "run returned";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "boom");
  }
  EXPECT_EQ(stopped, 5);
}

TEST_P(TeamInBothModes, IsUsableAfterwardsAndDropsWhatNobodyReceived) {
  Team team(2, GetParam());
  const int old_value = 1, new_value = 2;
  EXPECT_THROW(team.run([&](Communicator& comm) {
    if (comm.rank() == 0) {
      Request request = comm.isend(bytes_of(old_value), 1, 0);
      comm.barrier();
      wait(comm, request);
      comm.barrier();
    }
    comm.barrier();
    throw std::runtime_error("boom");
  }),
               std::runtime_error);
  team.run([&](Communicator& comm) {
    int value = 0;
    if (comm.rank() == 0) return send(comm, bytes_of(new_value), 1, 0);
    recv(comm, mutable_bytes_of(value), 0, 0);
    EXPECT_EQ(value, 2);
  });
}

TEST(Team, AMessageOfAnotherSizeIsTold) {
  for (const int late : {0, 1}) {
    EXPECT_THROW(Team(2).run([&](Communicator& comm) {
      std::int64_t wide = 0;
      std::int32_t narrow = 0;
      if (comm.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (comm.rank() == 0) return send(comm, bytes_of(wide), 1, 0);
      recv(comm, mutable_bytes_of(narrow), 0, 0);
    }),
                 std::logic_error);
  }
}

TEST(Team, RanksAndTagsThereAreNotAreTold) {
  const auto sends = [](int to, int tag) {
    return [=](Communicator& comm) { send(comm, {}, to, tag); };
  };
  EXPECT_THROW(Team(2).run(sends(2, 0)), std::logic_error);
  EXPECT_THROW(Team(2).run(sends(-1, 0)), std::logic_error);
  EXPECT_THROW(Team(2).run(sends(0, -1)), std::logic_error);
  EXPECT_THROW(Team(2).run(sends(0, Communicator::max_tag + 1)), std::logic_error);
}

TEST_P(TeamInBothModes, ADestroyedReceiveIsTakenBack) {
  Team(2, GetParam()).run([](Communicator& comm) {
    int value = comm.rank(), dropped = -1;
    if (comm.rank() == 1) comm.irecv(mutable_bytes_of(dropped), 0, 0).reset();
    comm.barrier();
    if (comm.rank() == 0) return send(comm, bytes_of(value), 1, 0);
    recv(comm, mutable_bytes_of(value), 0, 0);
    EXPECT_EQ(value, 0);
    EXPECT_EQ(dropped, -1);
  });
}

TEST(Team, ADestroyedSendIsTakenBack) {
  Team(2).run([](Communicator& comm) {
    int value = 1, dropped = 2;
    if (comm.rank() == 0) {
      comm.isend(bytes_of(dropped), 1, 0).reset();
      comm.barrier();
      return send(comm, bytes_of(value), 1, 0);
    }
    comm.barrier();
    recv(comm, mutable_bytes_of(value), 0, 0);
    EXPECT_EQ(value, 1);
  });
}

// Ranks are stopped in the middle of traffic, and their buffers die before their requests: no other
// rank may touch them then (the sanitizers watch).
TEST_P(TeamInBothModes, StoppedRanksLeaveNoDanglingBuffers) {
  Team team(5, GetParam());
  for (int round = 0; round < 60; ++round) {
    EXPECT_THROW(team.run([&](Communicator& comm) {
      const int next = (comm.rank() + 1) % 5;
      const int before = (comm.rank() + 4) % 5;
      for (int i = 0;; ++i) {
        if (comm.rank() == round % 5 && i == round % 8) throw std::runtime_error("boom");
        Request sent, received;
        Blob data(100000, std::byte{1}), buffer(100000);
        received = comm.irecv(buffer, before, 0);
        sent = comm.isend(data, next, 0);
        wait(comm, received);
        wait(comm, sent);
      }
    }),
                 std::runtime_error);
  }
}

TEST_P(TeamInBothModes, HundredsOfRanksWork) {
  constexpr int size = 512;
  Team team(size, GetParam());
  team.run([](Communicator& comm) {
    comm.barrier();
    EXPECT_EQ(allreduce(comm, comm.rank(), Reduce::sum), size * (size - 1) / 2);
    comm.barrier();
  });
}

}  // namespace
}  // namespace cairn
