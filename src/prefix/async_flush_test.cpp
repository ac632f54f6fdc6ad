// A flush that nobody waits for, one process at a time: no test here sends a message once it has
// begun.
#include "prefix/async_flush.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <thread>

#include "support/flush_in_flight.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using State = PartFlush::State;

class AsyncFlush : public FlushInFlight {
 protected:
  void fly_well(int dataset) {
    run_well([&](PrefixRank& rank) {
      Flight flight = prepare(rank, dataset);
      EXPECT_EQ(fly(flight), 0);
    });
  }

  /// Dataset 1 is there; dataset 2, which has files of the same names, is on its way when one rank
  /// dies at its call number `step` in the prefix directory. False if it has none so late.
  bool fly_crashes(int victim, std::uint64_t step) {
    begin_anew();
    flush_well(1);
    modify_ns = later_ns;
    std::atomic<bool> crashed = false;
    std::atomic<int> calls = -1;
    try {
      run(
          [&](PrefixRank& rank) {
            Flight flight = prepare(rank, 2);
            if (rank.comm.rank() == victim) calls = 0;
            int idle = 0;
            (void)fly(flight, [&] { return crashed && ++idle > 80; });
          },
          [&](int rank, const FileOperation& operation) -> Status {
            if (rank != victim || calls < 0 || !operation.path.starts_with(prefix())) return {};
            if (static_cast<std::uint64_t>(calls++) != step) return {};
            crashed = true;
            throw Crash{};
          });
    } catch (const Crash&) {
    }
    return crashed;
  }

  void begin_anew() {
    fs::remove_all(prefix());
    fs::create_directories(prefix());
    modify_ns = earlier_ns;
  }

  static constexpr std::int64_t earlier_ns = 1'000'000'000;
  static constexpr std::int64_t later_ns = 2'000'000'000;
};

TEST_F(AsyncFlush, ArrivesWithoutAMessage) {
  fly_well(1);
  std::vector<std::string> damaged;
  const Listing listing = *read_listing(*make_posix_files(), folder(), damaged);
  ASSERT_EQ(listing.size(), 1U);
  EXPECT_TRUE(listing[0].settled);
  EXPECT_EQ(listing[0].files, 6U);
  EXPECT_EQ(*read_current(*make_posix_files(), folder()), "ckpt.1");
  EXPECT_EQ(names_of_cairn(), std::vector<std::string>{});
  EXPECT_EQ(fetch_again(1), "");
}

TEST_F(AsyncFlush, MarksTheOlderDatasetsWhoseFilesItReplaces) {
  flush_well(1);
  modify_ns = later_ns;
  std::vector<Replaced> replaced;
  run_well([&](PrefixRank& rank) {
    OwnerFlush::Books books = no_books();
    books.close = [&](Communicator&, const FlushAccount& account) {
      EXPECT_TRUE(account.record.settled);
      replaced = account.replaced.value();
    };
    Flight flight = prepare(rank, 2, books);
    fly(flight);
  });
  ASSERT_EQ(replaced.size(), 1U);
  EXPECT_EQ(replaced[0].older, "dataset 1 (ckpt.1)");
  EXPECT_EQ(fetch_again(2), "");
}

/// What counts afterwards is whole, and the older one is there as long as the newer one is not.
TEST_F(AsyncFlush, ADeathAtAnyStepLosesNothing) {
  for (int victim = 0; victim < ranks; ++victim) {
    std::uint64_t step = 0;
    for (; fly_crashes(victim, step); ++step) {
      const std::string newer = fetch_again(2);
      if (newer == "not listed") {
        modify_ns = earlier_ns;
        ASSERT_EQ(fetch_again(1), "") << victim << " step " << step;
      } else {
        ASSERT_EQ(newer, "") << victim << " step " << step;
      }
      ASSERT_EQ(names_of_cairn(), std::vector<std::string>{}) << victim << " step " << step;
    }
    EXPECT_GT(step, 20U) << victim;
  }
}

/// Power fails between the rename that publishes the dataset and its sync: the rename is undone.
TEST_F(AsyncFlush, NoFileTakesItsNameBeforeThePublicationIsDurable) {
  flush_well(1);
  modify_ns = later_ns;
  std::uint64_t epoch = 0;
  run(
      [&](PrefixRank& rank) {
        if (rank.keeper) epoch = rank.site.epoch;
        Flight flight = prepare(rank, 2);
        int idle = 0;
        (void)fly(flight, [&] { return is_published(2) && ++idle > 80; });
      },
      [&](int, const FileOperation& operation) -> Status {
        const bool is_sync = operation.name == "sync_folder" &&
                             operation.path == folder().datasets() && is_published(2);
        return is_sync ? fail(Code::io, "the power fails") : Status{};
      });
  ASSERT_TRUE(is_published(2));
  EXPECT_EQ(names_of_cairn().size(), 2U * ranks + 1) << "no file has taken its name";
  fs::rename(folder().dataset(info_of(2)), folder().pending(epoch, info_of(2)));
  const std::string newer = fetch_again(2);
  if (newer == "not listed") {
    modify_ns = earlier_ns;
    EXPECT_EQ(fetch_again(1), "");
  } else {
    EXPECT_EQ(newer, "");
  }
  EXPECT_EQ(names_of_cairn(), std::vector<std::string>{});
}

/// The owner is dead as soon as the plan is there, and so is every process as soon as its part is
/// done.
TEST_F(AsyncFlush, WhenAllPartsAreDoneItIsThereWhoeverHasDied) {
  run_well([&](PrefixRank& rank) {
    Flight flight = prepare(rank, 1);
    if (flight.owner)
      while (!flight.owner->is_planned()) {
        ASSERT_TRUE(flight.owner->advance());
        ASSERT_TRUE(flight.part->state() != State::none || flight.part->advance());
      }
    while (flight.part->state() < State::staged) ASSERT_TRUE(flight.part->advance());
  });
  EXPECT_TRUE(is_published(1));
  EXPECT_EQ(fetch_again(1), "");
}

/// Full, or out of order for a moment: whatever fails once.
TEST_F(AsyncFlush, WhatFailsOnceIsTriedAgain) {
  for (const Code code : {Code::no_space, Code::io})
    for (int victim = 0; victim < ranks; ++victim) {
      bool struck = true;
      for (std::uint64_t step = 0; struck; ++step) {
        std::atomic<int> calls = -1;
        struck = false;
        begin_anew();
        run(
            [&](PrefixRank& rank) {
              Flight flight = prepare(rank, 1);
              if (rank.comm.rank() == victim) calls = 0;
              fly(flight);
            },
            [&](int rank, const FileOperation& operation) -> Status {
              if (rank != victim || calls < 0 || !operation.path.starts_with(prefix())) return {};
              if (static_cast<std::uint64_t>(calls++) != step) return {};
              struck = true;
              return fail(code, "injected at {} {}", operation.name, operation.path);
            });
        ASSERT_EQ(fetch_again(1), "") << victim << " step " << step;
      }
    }
}

TEST_F(AsyncFlush, SoManyRanksCopyAtATimeAsTheyMay) {
  std::atomic<int> copying = 0;
  std::atomic<int> most = 0;
  const auto is_staged = [&](const FileOperation& operation) {
    return operation.path.starts_with(prefix()) &&
           operation.path.find("/.cairn.") != std::string::npos;
  };
  std::array<std::atomic<bool>, ranks> begun{};
  run(
      [&](PrefixRank& rank) {
        rank.site.limits.width = 1;
        Flight flight = prepare(rank, 1);
        fly(flight);
      },
      [&](int rank, const FileOperation& operation) -> Status {
        if (operation.name == "create" && is_staged(operation) &&
            !begun[static_cast<std::size_t>(rank)].exchange(true))
          most = std::max(most.load(), ++copying);
        if (operation.path.ends_with(fmt::format("/done/0.{}", rank)) && operation.name == "create")
          --copying;
        return {};
      });
  EXPECT_EQ(most, 1);
  EXPECT_EQ(fetch_again(1), "");
}

/// Once all parts are done, another process publishes just before call number `step` of one rank.
TEST_F(AsyncFlush, PublicationByAnotherProcessAtAnyMomentIsNoError) {
  const fs::path published = folder().dataset(info_of(1));
  constexpr int most_calls = 24;
  int publications = 0;
  for (int watched = 0; watched < ranks; ++watched) {
    for (int step = 0; step < most_calls; ++step) {
      begin_anew();
      const fs::path pending = folder().pending(1, info_of(1));
      int calls = 0;  // of the watched rank
      std::atomic<bool> has_come = false;
      run(
          [&](PrefixRank& rank) {
            Flight flight = prepare(rank, 1);
            EXPECT_EQ(fly(flight), 0) << watched << " step " << step;
          },
          [&](int rank, const FileOperation& operation) -> Status {
            if (rank != watched) {  // does not publish before the moment of this test
              while (operation.name == "rename" && operation.path == pending && !has_come &&
                     fs::exists(pending))
                std::this_thread::yield();
            } else if (operation.path.starts_with(prefix()) && fs::exists(pending / "done/2.0") &&
                       calls++ == step) {
              fs::remove(folder().listing());
              fs::rename(pending, published);
              ++publications;
              has_come = true;
            }
            return {};
          });
      ASSERT_EQ(fetch_again(1), "") << watched << " step " << step;
    }
  }
  EXPECT_GT(publications, most_calls / 2);  // the watched rank is sometimes the first itself
}

/// Only rank 1 does its part; whatever it has reached, it goes no further.
TEST_F(AsyncFlush, ALaterOwnerEndsIt) {
  for (const State reached : {State::none, State::described, State::planned, State::staged}) {
    flush_well(1);
    run([&](PrefixRank& rank) {
      Flight flight = prepare(rank, 2);
      const bool goes_on = rank.comm.rank() == 1;
      const State until = goes_on ? reached : State::described;
      while (flight.part->state() < until || (flight.owner && !flight.owner->is_planned())) {
        if (flight.owner) {
          ASSERT_TRUE(flight.owner->advance());
        }
        if (flight.part->state() < until) {
          ASSERT_TRUE(flight.part->advance());
        }
      }
      rank.comm.barrier();
      if (flight.owner) {
        ASSERT_TRUE(Keeper::take_over(*rank.files, rank.site.clock, folder(), owner()));
      }
      rank.comm.barrier();
      if (!goes_on) return;
      Result<bool> last = true;
      while (last && *last) last = flight.part->advance();
      ASSERT_FALSE(last);
      EXPECT_EQ(last.error().code, Code::busy) << last.error().text;
    });
    EXPECT_FALSE(is_published(2));
    EXPECT_EQ(fetch_again(1), "");
    EXPECT_EQ(names_of_cairn(), std::vector<std::string>{});
  }
}

TEST_F(AsyncFlush, ADamagedBlockIsItsRanksErrorUntilItIsRepaired) {
  run_well([&](PrefixRank& rank) {
    Flight flight = prepare(rank, 1);
    const std::string path = cached(1, 2).file("ckpt/r2/f0");
    const std::string whole = read_all(path);
    if (rank.comm.rank() == 2) {
      std::fstream stream(path, std::ios::binary | std::ios::in | std::ios::out);
      stream.put('!');
    }
    rank.comm.barrier();
    if (rank.comm.rank() != 2) return (void)fly(flight);
    Result<bool> last = true;
    while (last) last = flight.part->advance();
    EXPECT_EQ(last.error().code, Code::corrupt) << last.error().text;
    EXPECT_FALSE(is_published(1));
    std::ofstream(path, std::ios::binary) << whole;
    EXPECT_EQ(fly(flight), 0);
  });
  EXPECT_EQ(fetch_again(1), "");
}

}  // namespace
}  // namespace cairn
