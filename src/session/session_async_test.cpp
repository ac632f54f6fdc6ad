// Copies to the prefix directory that the program does not wait for: by real threads.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "support/async_bed.hpp"

namespace cairn {
namespace {

/// Of a rank's own thread, while it is in a test's part that only calls Cairn.
thread_local bool is_in_a_call = false;

/// No call of the program waits for the prefix directory, or even looks at it.
TEST(SessionAsync, TheProgramGoesOnWhileACheckpointIsCopied) {
  AsyncBed bed;
  Gate gate(false);
  std::mutex mutex;
  std::string looks;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    if (operation.path.starts_with(bed.settings.prefix) && is_in_a_call) {
      const std::scoped_lock lock(mutex);
      looks += fmt::format("{} {}\n", operation.name, operation.path);
    }
    if (stages(operation)) gate.pass();
    return {};
  };
  bed.run_async([&](JobRank& rank) {
    is_in_a_call = true;
    for (const int dataset : {1, 2, 3}) rank.expect_written(dataset);
    rank.comm.barrier();
    EXPECT_EQ(looks, "");
    rank.comm.barrier();
    is_in_a_call = false;
    if (rank.number() == 0) {
      gate.wait_for(1);
      EXPECT_EQ(bed.listed(), Names{});
      gate.open();
    }
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.2"}));
  bed.expect_own_files(2);
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 3);
}

TEST(SessionAsync, WhatIsCopiedIsSafeWithoutAnotherCallOfTheProgram) {
  AsyncBed bed;
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    bed.wait_until_listed(2);
  });
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

TEST(SessionAsync, ADeathAmidTheCopyLeavesItToTheNextRun) {
  AsyncBed bed;
  bed.die_amid_copy({1, 2});
  EXPECT_FALSE(bed.is_listed(2));
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  EXPECT_TRUE(bed.is_listed(2));
}

TEST(SessionAsync, TheCacheKeepsWhatIsBeingCopied) {
  AsyncBed bed;
  Gate gate(false);
  bed.hold_copies_at(gate);
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2, 3, 4, 5}) rank.expect_written(dataset);
    rank.comm.barrier();
    if (rank.number() == 0) {
      EXPECT_FALSE(bed.parts("n0", 2).empty()) << "it is on its way";
      EXPECT_TRUE(bed.parts("n0", 3).empty());
      gate.open();
      bed.wait_until_listed(2);
    }
    rank.comm.barrier();
    EXPECT_TRUE(rank.session->have_restart()) << "waits until nothing is under way";
    rank.expect_written(6);
    rank.comm.barrier();
    EXPECT_TRUE(bed.parts("n0", 2).empty()) << "it has arrived";
    finalize(rank);
  });
  bed.expect_own_files(6);
}

TEST(SessionAsync, ACheckpointThatWaitsGivesWayToANewerOne) {
  AsyncBed bed;
  Gate gate(false);
  bed.hold_copies_at(gate);
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    gate.wait_for(1);
    for (const int dataset : {3, 4, 5, 6}) rank.expect_written(dataset);
    if (rank.number() == 0) gate.open();
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.6", "ckpt.2"}));
  EXPECT_TRUE(bed.logs("dataset 4 (ckpt.4) is not copied")) << bed.log_text();
}

/// Outputs must be there: the third one waits until the first is.
TEST(SessionAsync, AProgramThatIsFasterThanThePrefixDirectoryWaitsForIt) {
  AsyncBed bed;
  Gate gate(false);
  std::atomic<bool> is_open = false;
  bed.hold_copies_at(gate);
  bed.run_async([&](JobRank& rank) {
    std::thread opens;
    for (const int dataset : {1, 2}) rank.expect_written(dataset, flag_output);
    if (rank.number() == 0)
      opens = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        is_open = true;
        gate.open();
      });
    rank.expect_written(3, flag_output);
    EXPECT_TRUE(is_open);
    if (opens.joinable()) opens.join();
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.2", "ckpt.1"}));
}

TEST(SessionAsync, AFullPrefixDirectoryIsToldOnceAndTriedAgain) {
  AsyncBed bed;
  std::atomic<bool> is_full = true;
  std::atomic<int> refused = 0;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    if (!stages(operation) || !is_full) return {};
    ++refused;
    return fail(Code::no_space, "cannot create {}: No space left on device", operation.path);
  };
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    while (refused < 8) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    rank.comm.barrier();
    rank.expect_not_copied(3);
    rank.expect_written(4);
    rank.comm.barrier();
    if (rank.number() == 0) is_full = false;
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.4", "ckpt.2"}));
  const std::string said = bed.log_text();
  EXPECT_TRUE(bed.logs("dataset 2 (ckpt.2) is safe in the cache, but not yet in")) << said;
  EXPECT_EQ(said.find("No space"), said.rfind("No space")) << said;
}

TEST(SessionAsync, TheEndOfTheRunDoesNotWaitForWhatFailsForEver) {
  AsyncBed bed;
  bed.clock = std::make_unique<SkewedClock>(40);
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    return stages(operation) ? fail(Code::io, "injected at {}", operation.path) : Status{};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2);
    rank.expect_not_all_copied();
  });
  EXPECT_EQ(bed.restart(four_nodes()), 2) << "the caches have it";
}

/// What the ranks that were not in trouble have done meanwhile must not count for the next try.
TEST(SessionAsync, WhatWasGivenUpBeginsFromNothing) {
  AsyncBed bed;
  bed.clock = std::make_unique<SkewedClock>(40);
  std::atomic<bool> is_full = true;
  bed.hook = [&](int rank, const FileOperation& operation) -> Status {
    const bool fails = rank == 2 && is_full && stages(operation);
    return fails ? fail(Code::no_space, "injected at {}", operation.path) : Status{};
  };
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) (void)rank.write(dataset, flag_output);
    EXPECT_TRUE(rank.session->datasets().drop("none of that name"))
        << "waits until both are given up";
    rank.comm.barrier();
    EXPECT_EQ(bed.listed(), Names{});
    for (const auto& left : std::filesystem::recursive_directory_iterator(bed.settings.prefix))
      EXPECT_FALSE(left.path().filename().string().starts_with(".cairn.0")) << left.path();
    rank.comm.barrier();
    is_full = false;
    rank.expect_written(3, flag_output);
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.2", "ckpt.1"}));
  for (const int dataset : {1, 2, 3}) bed.expect_own_files(dataset);
}

TEST(SessionAsync, TwoThatAreUnderWayWhenTheDirectoryIsTakenOverArriveInTheEnd) {
  AsyncBed bed;
  Gate gate(false);
  bed.hold_copies_at(gate);
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset, flag_output);
    gate.wait_for(1);
    rank.comm.barrier();
    if (rank.number() == 0) {
      OwnerRecord command = **read_owner(*rank.files, {bed.settings.prefix});
      command.run = {command.run.time_us + 1, 7};
      auto keeper =
          Keeper::take_over(*rank.files, rank.clock, {bed.settings.prefix}, command, Claim::forced);
      ASSERT_TRUE(keeper) << keeper.error().text;
      ASSERT_TRUE(keeper->resign());
      gate.open();
    }
    rank.comm.barrier();
    for (int dataset = 3; dataset < 6; ++dataset) (void)rank.write(dataset, flag_output);
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.5", "ckpt.4", "ckpt.3", "ckpt.2", "ckpt.1"}));
  for (const int dataset : {1, 2, 3, 4, 5}) bed.expect_own_files(dataset);
}

TEST(SessionAsync, ADamagedBlockIsRepairedOnTheWay) {
  AsyncBed bed;
  Gate gate(false);
  bed.hold_copies_at(gate);
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    rank.comm.barrier();
    if (rank.number() == 0) {
      flip_bit(bed.parts("n1", 2).front() + "/files" + fmt::format("{}/ckpt.2/rank 2.0", ""));
      gate.open();
    }
    rank.expect_written(3);
    finalize(rank);
  });
  EXPECT_TRUE(bed.arrived_by_itself(2)) << bed.log_text();
  bed.expect_own_files(2);
}

/// The directory fails for some time before the copy reads the damaged block.
TEST(SessionAsync, ADamagedBlockIsRepairedAfterOtherErrorsToo) {
  AsyncBed bed;
  bed.clock = std::make_unique<SkewedClock>(20);
  std::atomic<bool> is_failing = true;
  std::atomic<int> errors = 0;
  bed.hook = [&](int rank, const FileOperation& operation) -> Status {
    if (rank != 2 || !is_failing || !operation.path.ends_with("/done/0.2")) return {};
    ++errors;
    return fail(Code::io, "injected at {}", operation.path);
  };
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    rank.comm.barrier();
    if (rank.number() == 0) {
      while (errors < 5) sleep_ms(1);
      flip_bit(bed.parts("n1", 2).front() + "/files/ckpt.2/rank 2.0");
      is_failing = false;
    }
    rank.comm.barrier();
    EXPECT_TRUE(rank.session->datasets().drop("none of that name")) << "waits for the copy";
    finalize(rank);
  });
  EXPECT_TRUE(bed.arrived_by_itself(2)) << bed.log_text();
  bed.expect_own_files(2);
}

/// Good news lie between the two times.
TEST(SessionAsync, TheSameFailureIsReportedAgainWhenItComesBack) {
  AsyncBed bed;
  bed.settings.flush_interval = 1;
  std::atomic<bool> is_full = true;
  std::atomic<int> refused = 0;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    if (!stages(operation) || !is_full) return {};
    ++refused;
    return fail(Code::no_space, "injected");
  };
  bed.run_async([&](JobRank& rank) {
    const auto wait_for_refusals = [&] {
      while (refused < 8) sleep_ms(1);
      rank.comm.barrier();
    };
    rank.expect_written(1);
    wait_for_refusals();
    rank.expect_not_copied(2);
    rank.comm.barrier();
    is_full = false;
    bed.wait_until_listed(2);
    rank.expect_written(3);
    bed.wait_until_listed(3);
    rank.comm.barrier();
    refused = 0;
    is_full = true;
    rank.comm.barrier();
    rank.expect_written(4);
    wait_for_refusals();
    rank.expect_not_copied(5);
    rank.comm.barrier();
    is_full = false;
    finalize(rank);
  });
}

TEST(SessionAsync, CallsThatNameADatasetWaitUntilItIsThere) {
  using Call = Status (NamedDatasets::*)(const std::string&);
  for (const Call call : {&NamedDatasets::current, &NamedDatasets::drop, &NamedDatasets::remove}) {
    AsyncBed bed;
    Gate gate(false);
    bed.hold_copies_at(gate);
    bed.run_async([&](JobRank& rank) {
      for (const int dataset : {1, 2}) rank.expect_written(dataset);
      std::thread opens;
      if (rank.number() == 0)
        opens = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
          gate.open();
        });
      EXPECT_TRUE((rank.session->datasets().*call)("ckpt.2"));
      if (opens.joinable()) opens.join();
      finalize(rank);
    });
    const bool stays = call == &NamedDatasets::current;
    EXPECT_EQ(bed.is_listed(2), stays);
  }
}

TEST(SessionAsync, ADirectoryThatWasTakenOverIsTakenBack) {
  AsyncBed bed;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    rank.comm.barrier();
    if (rank.number() == 0) {
      const auto owner = **read_owner(*rank.files, {bed.settings.prefix});
      OwnerRecord command = owner;
      command.run = {owner.run.time_us + 1, 7};
      auto keeper =
          Keeper::take_over(*rank.files, rank.clock, {bed.settings.prefix}, command, Claim::forced);
      ASSERT_TRUE(keeper) << keeper.error().text;
      ASSERT_TRUE(keeper->resign());
    }
    rank.comm.barrier();
    rank.expect_written(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    (void)rank.write(3);
    (void)rank.write(4);
    finalize(rank);
  });
  EXPECT_TRUE(bed.is_listed(4)) << bed.log_text();
}

/// Where a process may have no more threads its calls do the work.
TEST(SessionAsync, WithoutAThreadTheEndOfTheRunCopies) {
  AsyncBed bed;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.2"}));
  bed.expect_own_files(2);
}

TEST(SessionAsync, ARequestToStopReachesTheProgramAllTheSame) {
  AsyncBed bed;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    EXPECT_FALSE(rank.session->schedule().should_exit().value());
    rank.comm.barrier();
    if (rank.number() == 0) {
      ASSERT_TRUE(
          HaltFile(*rank.files, rank.clock, {bed.settings.prefix}).update([](HaltRecord& record) {
            record.reason = halt_reason::job_halted;
          }));
    }
    rank.comm.barrier();
    while (!rank.session->schedule().should_exit().value())
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    finalize(rank);
  });
}

TEST(SessionAsync, TheCheckpointsThatAreLeftAreCounted) {
  AsyncBed bed;
  const auto files = make_posix_files();
  ASSERT_TRUE(HaltFile(*files, *bed.clock, {bed.settings.prefix}).update([](HaltRecord& record) {
    record.checkpoints_left = 2;
  }));
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) {
      EXPECT_FALSE(rank.session->schedule().should_exit().value()) << dataset;
      rank.expect_written(dataset);
    }
    EXPECT_TRUE(rank.session->schedule().should_exit().value());
    finalize(rank);
  });
}

TEST(SessionAsync, TheLogTellsWhenItBeganAndWhenItWasThere) {
  AsyncBed bed;
  bed.settings.log = true;
  bed.settings.log_syslog = false;
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    finalize(rank);
  });
  const std::string log = read_all(PrefixFolder{bed.settings.prefix}.job().log());
  const auto begun = log.find("event=ASYNC_FLUSH_START");
  const auto there = log.find("event=ASYNC_FLUSH_SUCCESS");
  EXPECT_NE(begun, std::string::npos) << log << bed.log_text();
  EXPECT_NE(there, std::string::npos) << log << bed.log_text();
  EXPECT_LT(begun, there);
  EXPECT_NE(log.find("xfer=FLUSH_ASYNC"), std::string::npos) << log;
}

}  // namespace
}  // namespace cairn
