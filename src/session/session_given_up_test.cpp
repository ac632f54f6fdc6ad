// Copies that a call gives up, or cannot give up, because the prefix directory does not answer.
#include <atomic>
#include <fstream>
#include <sstream>

#include "support/stuck_bed.hpp"

namespace cairn {
namespace {

/// A call wants to give the copies up, as one rank fails, and cannot, as another hangs. The copy of
/// a third, which was stopped for that, begins once more. No call of the program helps it.
TEST(SessionGivenUp, ACopyThatWasStoppedInVainGoesOn) {
  StuckBed bed;
  bed.clock = std::make_unique<SkewedClock>(40);
  bed.copy_a_block_in_ten_seconds();
  Gate gate;
  std::atomic<bool> is_full = true;
  bed.hang_and_fail(gate, is_full);
  Rescue rescue(gate, 15'000);
  bed.run_async([&](JobRank& rank) {
    bed.write_long_part_of_rank_4(rank);
    gate.wait_for(1);
    EXPECT_FALSE(rank.session->datasets().drop("none of that name"));
    bed.expect_to_arrive_after(rescue, rank, is_full);
  });
  EXPECT_TRUE(bed.arrived_by_itself(1)) << bed.log_text();
}

/// One rank fails each time. Another one copies a block in ten seconds, and would begin once more
/// if it were stopped.
TEST(SessionGivenUp, NoCopyIsStoppedBeforeTheDirectoryAnswers) {
  HangingAfterErrorsBed bed;
  bed.clock = std::make_unique<SkewedClock>(40);
  bed.copy_a_block_in_ten_seconds();
  std::atomic<int> begun = 0;
  bed.beside = [&](int number, const FileOperation& operation) {
    if (number == 4 && stages(operation)) ++begun;
  };
  bed.run_async([&](JobRank& rank) {
    is_programs_thread = true;
    bed.write_long_part_of_rank_4(rank);
    while (begun == 0) sleep_ms(1);
    bed.hang(rank);
    EXPECT_FALSE(rank.session->have_restart());
    EXPECT_EQ(begun, 1);
    bed.expect_no_wait(rank);
    wait_for_answer(rank);
    finalize(rank);
  });
}

/// The directory does not answer for more than a minute, so the call could not give the copy up
/// when rank 2 failed. Rank 4 copies a block in ten seconds.
TEST(SessionGivenUp, ACopyThatMovesAgainIsWaitedForAfterItCouldNotBeGivenUp) {
  HangingAfterErrorsBed bed;
  bed.copy_a_block_in_ten_seconds();
  std::atomic<int> written = 0;
  bed.beside = [&](int number, const FileOperation& operation) {
    const bool is_staged = operation.path.find("/.cairn.") != std::string::npos;
    if (number != 4 || operation.name != "write" || !is_staged) return;
    if (++written == 3) bed.is_full = false;
    if (written == 10) bed.answer();
  };
  bed.run_async([&](JobRank& rank) {
    is_programs_thread = true;
    bed.write_long_part_of_rank_4(rank);
    while (written == 0) sleep_ms(1);
    bed.hang(rank);
    const auto is_there = rank.session->have_restart();
    EXPECT_TRUE(is_there) << is_there.error().text;
    EXPECT_TRUE(bed.is_listed(1));
    finalize(rank);
  });
  EXPECT_TRUE(bed.arrived_by_itself(1)) << bed.log_text();
}

/// Before a new copy begins, the run looks at the directory once more.
TEST(SessionGivenUp, NoCallWaitsForADirectoryThatHangsAfterCopiesWereGivenUp) {
  HangingAfterErrorsBed bed;
  bed.run_async([&](JobRank& rank) {
    is_programs_thread = true;
    rank.expect_written(1, flag_output);
    EXPECT_TRUE(rank.session->have_restart()) << "gives the copy up";
    bed.hang(rank);
    for (const int dataset : {2, 3}) rank.expect_not_copied(dataset, flag_output);
    expect_error(rank, 3, Safety::flushed, -1, Code::not_copied);
    bed.expect_no_wait(rank);
    wait_for_answer(rank);
    finalize(rank);
  });
  EXPECT_TRUE(bed.logs("does not answer")) << bed.log_text();
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.2", "ckpt.1"}));
  const std::string log = read_all(PrefixFolder{bed.settings.prefix}.job().json_log());
  EXPECT_NE(log.find("an answer of the directory"), std::string::npos) << log;
}

TEST(SessionGivenUp, TheEndLeavesAThreadBehindThatWaitsForAnAnswer) {
  HangingAfterErrorsBed bed;
  bed.run_async([&](JobRank& rank) {
    is_programs_thread = true;
    rank.expect_written(1, flag_output);
    EXPECT_TRUE(rank.session->have_restart()) << "gives the copy up";
    bed.hang(rank);
    rank.expect_not_copied(2, flag_output);
    rank.expect_not_all_copied();
    EXPECT_TRUE(rank.session->is_held()) << "its destructor would wait for the thread that hangs";
    bed.expect_no_wait(rank);
  });
}

/// The copy is at rest, after an error.
TEST(SessionGivenUp, NothingIsGivenUpInADirectoryThatDoesNotAnswer) {
  HangingAfterErrorsBed bed;
  bed.run_async([&](JobRank& rank) {
    is_programs_thread = true;
    rank.expect_written(1, flag_output);
    bed.hang(rank);
    EXPECT_FALSE(rank.session->have_restart());
    bed.expect_no_wait(rank);
    if (rank.number() == 0) {
      EXPECT_TRUE(bed.comes_to_be_listed(1));
    }
    rank.comm.barrier();
    finalize(rank);
  });
  EXPECT_TRUE(bed.arrived_by_itself(1)) << bed.log_text();
}

/// The second one has a descriptor of its own. The first one gives way to it.
TEST(SessionGivenUp, NoCopyOfTheProgramWaitsForADirectoryThatHangsAfterCopiesWereGivenUp) {
  HangingAfterErrorsBed bed;
  bed.settings.flush_interval = 1;
  CheckpointSettings& second = bed.settings.checkpoints.emplace_back(bed.settings.checkpoints[0]);
  second.id = 1;
  second.interval = 2;
  second.flush_async = false;
  bed.run_async([&](JobRank& rank) {
    is_programs_thread = true;
    rank.expect_written(1);
    EXPECT_TRUE(rank.session->have_restart()) << "gives the copy up";
    bed.hang(rank);
    rank.expect_not_copied(2);
    bed.expect_no_wait(rank);
    wait_for_answer(rank);
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), Names{"ckpt.2"});
}

// --- calls that have no time to give a copy up ---

/// Its plan was there, so the run finishes it as the next owner.
void expect_to_arrive_once(const StuckBed& bed) {
  EXPECT_EQ(bed.logged_events("ASYNC_FLUSH_FAIL"), 1);
  EXPECT_EQ(bed.logged_events("FLUSH_SUCCESS"), 1);
  EXPECT_EQ(bed.logged_events("ASYNC_FLUSH_SUCCESS"), 0);
  EXPECT_EQ(bed.listed(), Names{"ckpt.1"});
}

/// A command has owned the directory meanwhile, so the copy is to be given up.
TEST(SessionGivenUp, ALookOrAShortWaitDoesNotWaitForAnAnswer) {
  HangingAfterErrorsBed bed;
  bed.clock = std::make_unique<SleptClock>();
  bed.is_full = false;
  Gate copies;
  bed.beside = [&](int /*rank*/, const FileOperation& operation) {
    if (stages(operation)) copies.pass();
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    copies.wait_for(8);
    bed.lose_directory(rank);
    bed.hang(rank);
    copies.open();
    for (int look = 0; look < 300; ++look) {
      EXPECT_EQ(seconds_of(rank, [&] { expect_too_late(rank, 1, Safety::flushed, 0); }), 0);
      sleep_ms(1);
    }
    EXPECT_LT(seconds_of(rank, [&] { expect_too_late(rank, 1, Safety::flushed, 1); }), 1.5);
    bed.expect_no_wait(rank);
    while (!wait_for(rank, 1, Safety::flushed, -1))
      sleep_ms(1);  // a thread may be in its look still
    finalize(rank);
  });
  expect_to_arrive_once(bed);
}

TEST(SessionGivenUp, AShortWaitDoesNotWaitForAThreadThatHangs) {
  StuckBed bed;
  bed.clock = std::make_unique<SleptClock>();
  bed.settings.log_json = true;
  Gate copies;
  Gate gate;
  bed.hook = [&](int number, const FileOperation& operation) -> Status {
    if (stages(operation)) (number == 0 ? gate : copies).pass();
    return {};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    copies.wait_for(7);
    gate.wait_for(1);
    bed.lose_directory(rank);
    copies.open();
    for (int wait = 0; wait < 8; ++wait)
      EXPECT_LT(seconds_of(rank, [&] { expect_too_late(rank, 1, Safety::flushed, 0.25); }), 0.5);
    rank.comm.barrier();
    gate.open();
    // The short waits may have ended before the other threads have found the directory lost.
    if (wait_for(rank, 1, Safety::flushed, -1) != true)
      expect_reached(rank, 1, Safety::flushed, -1);
    finalize(rank);
  });
  expect_to_arrive_once(bed);
}

/// A command has owned the directory meanwhile, and may have deleted it. The caches have it no
/// more.
TEST(SessionGivenUp, WhatAnotherOwnerMayHaveDeletedDoesNotCount) {
  StuckBed bed;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    expect_reached(rank, 1, Safety::flushed, -1);
    EXPECT_TRUE(rank.session->have_restart());  // nothing is under way
    for (const int dataset : {2, 3}) rank.expect_written(dataset);
    rank.comm.barrier();
    EXPECT_TRUE(bed.parts("n0", 1).empty());
    EXPECT_EQ(safety(rank, 1), Safety::flushed);
    bed.lose_directory(rank);
    rank.expect_written(4, flag_output);
    (void)wait_for(rank, 4, Safety::flushed, -1);  // it may have news of the other owner
    expect_reached(rank, 4, Safety::flushed, -1);
    EXPECT_EQ(safety(rank, 1), Safety::none);
    finalize(rank);
  });
}

/// It has no time to give the copy up, so the next look finds it again.
TEST(SessionGivenUp, ALookReadsWhatCannotBeRepairedOnlyOnce) {
  DamagedBed bed;
  bed.settings.checkpoints[0].scheme = Scheme::single;
  bed.run_async([&](JobRank& rank) {
    bed.write_damaged(rank);
    const auto look = [&] { return wait_for(rank, 1, Safety::flushed, 0); };
    while (look()) sleep_ms(1);
    for (int again = 0; again < 3; ++again) {
      const auto seen = look();
      ASSERT_FALSE(seen);
      EXPECT_EQ(seen.error().code, Code::lost) << seen.error().text;
    }
    expect_error(rank, 1, Safety::flushed, -1, Code::lost);
    expect_error(rank, 1, Safety::flushed, 0, Code::lost);
  });
  const std::string said = bed.log_text();
  const auto first = said.find("cannot be restored");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("cannot be restored", first + 1), std::string::npos) << said;
}

}  // namespace
}  // namespace cairn
