#include "scheduler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "background.hpp"
#include "postboxes.hpp"

namespace cairn::sim {
namespace {

std::vector<int> order_of(std::uint64_t seed) {
  Scheduler scheduler{Chance(seed)};
  std::vector<int> order;
  scheduler.run(4, [&](int rank) {
    for (int i = 0; i < 50; ++i) {
      order.push_back(rank);
      scheduler.yield();
    }
  });
  return order;
}

TEST(Scheduler, SameSeedSameOrder) {
  EXPECT_EQ(order_of(1).size(), 200U);
  EXPECT_EQ(order_of(1), order_of(1));
  EXPECT_NE(order_of(1), order_of(2));
}

TEST(Scheduler, TimePassesForSleepersOnly) {
  Scheduler scheduler{Chance(3)};
  std::vector<int> woken;
  scheduler.run(3, [&](int rank) {
    scheduler.sleep_us(1'000'000 * (3 - rank));
    woken.push_back(rank);
  });
  EXPECT_EQ(woken, (std::vector<int>{2, 1, 0}));
  EXPECT_GE(scheduler.now_us(), 3'000'000);
  EXPECT_LT(scheduler.now_us(), 3'100'000);
}

/// What a process does of its own accord is done in turns with its rank, and as often as there is
/// time for it.
std::vector<int> order_with_steps(std::uint64_t seed) {
  Scheduler scheduler{Chance(seed)};
  std::vector<int> order;
  scheduler.run(2, [&](int rank) {
    HelperBackground background(scheduler, rank, {true, 100, seed});
    const auto steps = background.keep_stepping([&, rank] {
      order.push_back(10 + rank);
      scheduler.yield();
      order.push_back(20 + rank);
      return 50;
    });
    for (int i = 0; i < 200; ++i) {
      order.push_back(rank);
      scheduler.yield();
    }
  });
  return order;
}

TEST(Scheduler, StepsAreTakenBesideTheRankInAnOrderOfTheSeed) {
  const std::vector<int> order = order_with_steps(1);
  EXPECT_EQ(order, order_with_steps(1));
  EXPECT_NE(order, order_with_steps(2));
  for (const int rank : {0, 1}) {
    const auto begun = std::count(order.begin(), order.end(), 10 + rank);
    EXPECT_GT(begun, 5);
    EXPECT_EQ(begun, std::count(order.begin(), order.end(), 20 + rank)) << "the end waits for it";
  }
}

TEST(Scheduler, AProcessThatEndsTakesNoFurtherStepAndUnwindsItsThreadsFirst) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Scheduler scheduler{Chance(seed)};
    struct Unwound {
      ~Unwound() { order.push_back(name); }
      std::vector<std::string>& order;
      std::string name;
    };
    std::vector<std::string> order;
    bool has_ended = false;
    int late = 0;
    std::deque<HelperBackground> backgrounds;
    for (int rank = 0; rank < 2; ++rank)
      backgrounds.emplace_back(scheduler, rank, Stepping{true, 100, seed});
    scheduler.run(2, [&](int rank) {
      std::vector<std::string> nothing;
      const Unwound of_rank{rank == 1 ? order : nothing, "rank"};
      const auto steps = backgrounds[static_cast<std::size_t>(rank)].keep_stepping([&, rank] {
        const Unwound of_step{rank == 1 ? order : nothing, "step"};
        scheduler.yield();
        if (has_ended && rank == 1) ++late;
        scheduler.yield();
        return 10;
      });
      for (int i = 0; i < 100; ++i) scheduler.yield();
      if (rank == 1) scheduler.end(1);
      has_ended = has_ended || rank == 1;
      scheduler.yield();
    });
    EXPECT_EQ(late, 0);
    ASSERT_FALSE(order.empty());
    EXPECT_EQ(order.back(), "rank") << "seed " << seed;
  }
}

/// As UrgentHelp: the thread that works in another one's frame was started before it.
TEST(Scheduler, AThreadIsUnwoundBeforeThoseThatWereStartedLater) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Scheduler scheduler{Chance(seed)};
    std::vector<int> order;
    int begun = 0;
    scheduler.run(1, [&](int) {
      for (const int number : {1, 2, 3})
        scheduler.start_thread([&, number] {
          struct Unwound {
            ~Unwound() { order.push_back(number); }
            std::vector<int>& order;
            const int number;
          } const unwound{order, number};
          ++begun;
          while (true) scheduler.yield();
        });
      while (begun < 3) scheduler.yield();
      scheduler.end(0);
      scheduler.yield();
    });
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3})) << "seed " << seed;
  }
}

TEST(Scheduler, AStartedThreadMayWaitForAnotherAndForTheHelper) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Scheduler scheduler{Chance(seed)};
    HelperBackground background(scheduler, 0, {true, 100, seed});
    bool is_done = false;
    scheduler.run(
        1,
        [&](int) {
          const auto work = background.keep_working([&]() -> std::int64_t {
            background.post(0, [&] { scheduler.yield(); });
            background.wait();
            (void)background.keep_working([&]() -> std::int64_t {
              scheduler.yield();
              return 0;
            });
            is_done = true;
            return 1'000;
          });
          for (int i = 0; i < 1'000 && !is_done; ++i) scheduler.sleep_us(100);
          background.finish();
        },
        [&](int) { background.work(); });
    EXPECT_TRUE(is_done) << "seed " << seed;
  }
}

TEST(Scheduler, DeadlockIsFound) {
  Scheduler scheduler{Chance(4)};
  EXPECT_THROW(scheduler.run(3, [&](int) { scheduler.block(); }), Deadlock);
}

TEST(Scheduler, AnEndedRankIsUnwoundAndTheOthersWithIt) {
  Scheduler scheduler{Chance(5)};
  struct Unwound {
    explicit Unwound(int& count) : count_(count) {}
    ~Unwound() { ++count_; }
    int& count_;
  };
  int unwound = 0;
  bool went_on = false;
  scheduler.run(3, [&](int rank) {
    const Unwound guard(unwound);
    if (rank == 1) scheduler.end(1);
    scheduler.block();
    went_on = true;
  });
  EXPECT_EQ(unwound, 3);
  EXPECT_FALSE(went_on);
}

TEST(Scheduler, AnExceptionEndsAllAndComesOut) {
  Scheduler scheduler{Chance(6)};
  EXPECT_THROW(scheduler.run(3,
                             [&](int rank) {
                               if (rank == 2) throw Violation("x");
                               scheduler.block();
                             }),
               Violation);
}

/// Ranks that talk over postboxes.
class Talk {
 public:
  explicit Talk(std::uint64_t seed, int ranks = 2)
      : scheduler_(Chance(seed)), seam_(scheduler_, trace_), boxes_(ranks, seam_, Chance(seed)) {}

  void run(const std::function<void(Communicator&)>& rank_main) {
    seam_.begin(boxes_.size());
    scheduler_.run(boxes_.size(), [&](int rank) {
      ScheduledCommunicator comm(boxes_, rank);
      rank_main(comm);
    });
  }

  Trace trace_;
  Scheduler scheduler_;
  Seam seam_;
  Postboxes boxes_;
};

TEST(Postboxes, MessagesArriveInOrder) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Talk talk(seed);
    std::vector<int> got;
    talk.run([&](Communicator& comm) {
      std::vector<Request> requests;
      std::vector<int> numbers(10);
      for (int i = 0; i < 10; ++i) {
        int& number = numbers[static_cast<std::size_t>(i)];
        if (comm.rank() == 0) number = i;
        requests.push_back(comm.rank() == 0 ? comm.isend(bytes_of(number), 1, 7)
                                            : comm.irecv(mutable_bytes_of(number), 0, 7));
      }
      wait_all(comm, requests);
      if (comm.rank() == 1) got = numbers;
    });
    EXPECT_EQ(got, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})) << "seed " << seed;
    EXPECT_EQ(talk.boxes_.undelivered(), 0U);
  }
}

TEST(Postboxes, SendingToEachOtherFirstIsADeadlockForSomeSeed) {
  int deadlocks = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Talk talk(seed);
    try {
      talk.run([&](Communicator& comm) {
        int mine = comm.rank();
        send(comm, bytes_of(mine), 1 - comm.rank(), 1);
        recv(comm, mutable_bytes_of(mine), 1 - comm.rank(), 1);
      });
    } catch (const Deadlock&) {
      ++deadlocks;
    }
  }
  EXPECT_GT(deadlocks, 0);
  EXPECT_LT(deadlocks, 20);
}

TEST(Postboxes, AnotherSizeIsAViolation) {
  Talk talk(1);
  EXPECT_THROW(talk.run([&](Communicator& comm) {
    const std::int32_t four = 4;
    std::int64_t eight = 8;
    if (comm.rank() == 0)
      send(comm, bytes_of(four), 1, 1);
    else
      recv(comm, mutable_bytes_of(eight), 0, 1);
  }),
               Violation);
}

TEST(Postboxes, CollectivesAgree) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Talk talk(seed, 7);
    talk.run([&](Communicator& comm) {
      EXPECT_EQ(allreduce(comm, comm.rank(), Reduce::sum), 21);
      const Status verdict = agree(comm, comm.rank() == 3 ? fail(Code::io, "no") : Status{});
      EXPECT_EQ(verdict.error().rank, 3);
    });
  }
}

TEST(Seam, AnEventComesWithItsCall) {
  Talk talk(1, 1);
  int calls = 0;
  talk.run([&](Communicator&) {
    talk.seam_.after(3, [&] { talk.scheduler_.end_all(); });
    while (true) {
      talk.seam_.pass("call");
      ++calls;
    }
  });
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace cairn::sim
