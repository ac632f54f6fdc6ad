// Copies in the background that do not move, or move slowly: no call of the program waits longer
// for them than it says.
#include <atomic>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <thread>

#include "support/stuck_bed.hpp"

namespace cairn {
namespace {

/// One rank sees that; the others are in the middle of their slow copies.
TEST(SessionStuckCopies, SlowCopiesAreGivenUpAtOnceWhenAnotherOwnsTheDirectory) {
  StuckBed bed;
  bed.copy_very_slowly();
  Gate gate;
  std::atomic<int> staged = 0;
  bed.hook = [&](int number, const FileOperation& operation) -> Status {
    if (!stages(operation)) return {};
    ++staged;
    if (number == 7) gate.pass();
    return {};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    while (staged < 8) sleep_ms(1);
    bed.lose_directory(rank);
    if (rank.number() == 0) {
      gate.open();
      sleep_ms(300);
    }
    rank.comm.barrier();
    EXPECT_LT(seconds_of(rank, [&] { (void)rank.write(2); }), 5);
    finalize(rank);
  });
  EXPECT_TRUE(bed.logs("given up for now")) << bed.log_text();
}

TEST(SessionStuckCopies, NoCallWaitsForARankThatHangsWhileAnotherReportsAnError) {
  StuckBed bed;
  bed.clock = std::make_unique<SkewedClock>(40);
  Gate gate;
  std::atomic<bool> is_full = true;
  bed.hang_and_fail(gate, is_full);
  Rescue rescue(gate, 10'000);
  bed.run_async([&](JobRank& rank) {
    (void)rank.write(1, flag_output);
    gate.wait_for(1);
    const Status dropped = rank.session->datasets().drop("none of that name");
    EXPECT_FALSE(dropped);
    bed.expect_to_arrive_after(rescue, rank, is_full);
  });
  EXPECT_TRUE(bed.arrived_by_itself(1)) << bed.log_text();
}

/// For a minute of the clock; then it is back.
TEST(SessionStuckCopies, NoCallWaitsLongerThanAMinuteForADirectoryThatDoesNotAnswer) {
  StuckBed bed;
  bed.clock = std::make_unique<SkewedClock>(40);
  Gate gate;
  bed.hold_copies_at(gate);
  Rescue rescue(gate, 10'000);
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset, flag_output);
    EXPECT_FALSE(rank.session->have_restart());
    rank.expect_not_copied(3, flag_output);
    expect_error(rank, 1, Safety::flushed, -1, Code::not_copied);
    EXPECT_EQ(safety(rank, 1), Safety::protected_);
    rank.comm.barrier();
    if (rank.number() == 0) {
      EXPECT_TRUE(rescue.end()) << "a call waited for the directory";
      for (const int dataset : {1, 2}) EXPECT_TRUE(bed.comes_to_be_listed(dataset));
    }
    rank.comm.barrier();
    finalize(rank);
  });
  for (const int dataset : {1, 2}) EXPECT_TRUE(bed.arrived_by_itself(dataset)) << bed.log_text();
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.2", "ckpt.1"}));
}

void expect_end_names(JobRank& rank, Rescue& rescue) {
  const Status ended = rank.session->finalize();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Code::not_copied) << ended.error().text;
  EXPECT_NE(ended.error().text.find("dataset 1 (ckpt.1)"), std::string::npos) << ended.error().text;
  EXPECT_TRUE(rank.session->is_held()) << "its destructor would wait for the thread that hangs";
  rank.comm.barrier();
  if (rank.number() == 0) {
    EXPECT_TRUE(rescue.end()) << "SCR_Finalize waited for the directory";
  }
}

TEST(SessionStuckCopies, TheEndNamesWhatIsLeftInTimeThoughTheDirectoryHangs) {
  StuckBed bed;
  bed.settings.flush_at_end_seconds = 1;
  Gate gate;
  bed.hold_copies_at(gate);
  Rescue rescue(gate, 15'000);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    if (rank.number() == 0) gate.wait_for(1);
    expect_end_names(rank, rescue);
  });
  EXPECT_TRUE(bed.logs("does not answer. not finished: the copy of dataset 1 (ckpt.1)"))
      << bed.log_text();
}

TEST(SessionStuckCopies, TheEndNamesWhatIsLeftAfterAMinuteWithoutAnAnswer) {
  StuckBed bed;
  bed.clock = std::make_unique<SkewedClock>(40);
  Gate gate;
  bed.hold_copies_at(gate);
  Rescue rescue(gate, 15'000);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    if (rank.number() == 0) gate.wait_for(1);
    expect_end_names(rank, rescue);
  });
  EXPECT_TRUE(bed.logs("does not answer. not finished")) << bed.log_text();
}

/// Its copy is published, and hangs after that: nothing is left, but the next run is to know why it
/// has to wait.
TEST(SessionStuckCopies, TheEndSaysThatTheDirectoryHangsWhenAllIsCopied) {
  StuckBed bed;
  bed.settings.flush_at_end_seconds = 1;
  Gate gate;
  bed.hook = [&](int number, const FileOperation& operation) -> Status {
    const bool settles = operation.name == "remove_file" &&
                         operation.path.find("/done/0.") != std::string_view::npos;
    if (settles && number == 0) gate.pass();
    return {};
  };
  Rescue rescue(gate, 15'000);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    if (rank.number() == 0) gate.wait_for(1);
    EXPECT_TRUE(rank.session->finalize());
    rank.comm.barrier();
    if (rank.number() == 0) {
      EXPECT_TRUE(rescue.end()) << "SCR_Finalize waited for the directory";
    }
  });
  EXPECT_TRUE(bed.is_listed(1));
  EXPECT_TRUE(bed.logs("does not answer, so the records of the run")) << bed.log_text();
}

/// Two slow copies are under way, and there was no room for the third, as the first had failed.
TEST(SessionStuckCopies, AWaitForACopyThatFindsNoRoomEndsInTime) {
  StuckBed bed;
  bed.copy_very_slowly();
  std::atomic<bool> fails = true;
  std::atomic<bool> is_staging = false;
  bed.hook = [&](int number, const FileOperation& operation) -> Status {
    if (number != 2) return {};
    if (stages(operation)) is_staging = true;
    const bool reads_plan =
        operation.path.ends_with("/dataset") && operation.path.find("/epoch.") != std::string::npos;
    return reads_plan && fails ? fail(Code::io, "injected") : Status{};
  };
  bed.run_async([&](JobRank& rank) {
    (void)rank.write(1, flag_output);
    if (rank.number() == 0) sleep_ms(300);
    (void)rank.write(2, flag_output);
    rank.expect_not_copied(3, flag_output);
    rank.comm.barrier();
    fails = false;
    while (!is_staging) sleep_ms(1);
    rank.comm.barrier();
    const double waited_s =
        seconds_of(rank, [&] { expect_too_late(rank, 3, Safety::flushed, 0.3); });
    EXPECT_GT(waited_s, 0.25);
    EXPECT_LT(waited_s, 5);
    finalize(rank);
  });
}

/// Else `cairn run --hung-after` would end a run that is well.
TEST(SessionStuckCopies, ACallThatWaitsForACopyLogsThatTheRunLives) {
  StuckBed bed;
  bed.clock = std::make_unique<SkewedClock>(20);
  bed.settings.log_json = true;
  Gate gate;
  bed.hold_copies_at(gate);
  std::optional<Rescue> rescue;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    if (rank.number() == 0) rescue.emplace(gate, 1000);  // 20 s
    finalize(rank);
  });
  const std::string log = read_all(PrefixFolder{bed.settings.prefix}.job().json_log());
  int calls = 0;
  for (std::size_t at = 0; (at = log.find("\"CALL\"", at)) != std::string::npos; ++at) ++calls;
  EXPECT_GE(calls, 2) << log;
}

TEST(SessionStuckCopies, ALineSaysHowFarTheCopyIsAndWhatLimitsIt) {
  StuckBed bed;
  bed.clock = std::make_unique<SkewedClock>(20);
  bed.settings.async_bytes_per_s = std::uint64_t{1} << 40;
  Gate gate;
  std::atomic<bool> is_shut = false;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    if (is_shut && stages(operation)) gate.pass();
    return {};
  };
  std::optional<Rescue> rescue;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    expect_reached(rank, 1, Safety::flushed);
    rank.comm.barrier();
    is_shut = true;
    rank.comm.barrier();
    rank.expect_written(2, flag_output);
    if (rank.number() == 0) rescue.emplace(gate, 700);  // 14 s
    finalize(rank);
  });
  EXPECT_TRUE(bed.logs("for the copy of dataset 2 (ckpt.2)")) << bed.log_text();
  EXPECT_TRUE(bed.logs(" of 699 B; ")) << bed.log_text();
  EXPECT_TRUE(bed.logs("; the prefix directory limits the speed")) << "it is far from 1 TiB/s";
}

/// So waits a program that makes checkpoints somewhat faster than they are copied. Each call waits
/// for 3 s, and a line comes after each 10 s of them.
TEST(SessionStuckCopies, ALineSaysWhatLimitsCopiesForWhichManyCallsWaitALittle) {
  StuckBed bed;
  bed.clock = std::make_unique<SleptClock>();
  bed.settings.async_percent = 30;
  Gate gate;
  bed.hold_copies_at(gate);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    for (int call = 1; call <= 7; ++call) {
      expect_too_late(rank, 1, Safety::flushed, 3);
      if (rank.number() == 0) rank.log.info("{} is over", call);
    }
    rank.comm.barrier();
    gate.open();
    finalize(rank);
  });
  std::string order;
  std::istringstream said(bed.log_text());
  for (std::string line; std::getline(said, line);) {
    if (line.ends_with(" is over")) order += line.front();
    if (line.starts_with("waiting for ")) order += 'w';
  }
  EXPECT_EQ(order, "123w456w7") << bed.log_text();
  EXPECT_TRUE(bed.logs(" (with earlier calls 10 s) for the copy of dataset 1 (ckpt.1)"))
      << bed.log_text();
  EXPECT_TRUE(bed.logs("; the prefix directory limits the speed")) << "the copies never rest";
}

/// The copy takes more than a minute and a half of the clock. After a minute without a block it
/// would count as stuck: the machine may stand still for three seconds.
TEST(SessionStuckCopies, ACopyThatMovesSlowlyIsWaitedFor) {
  StuckBed bed;
  bed.clock = std::make_unique<SkewedClock>(20);
  bed.settings.block_bytes = 64;
  bed.settings.async_bytes_per_s = 80;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    const double waited_s =
        seconds_of(rank, [&] { EXPECT_TRUE(rank.session->datasets().drop("none of that name")); });
    EXPECT_GT(waited_s, 70);
    finalize(rank);
  });
  EXPECT_TRUE(bed.logs("; SCR_FLUSH_ASYNC_BW (80 B/s for each node) limits the speed"))
      << bed.log_text();
  EXPECT_TRUE(bed.arrived_by_itself(1)) << bed.log_text();
}

/// The others have copied their parts.
TEST(SessionStuckCopies, ALineNamesWhatLimitsTheRankThatStillCopies) {
  StuckBed bed;
  bed.clock = std::make_unique<SkewedClock>(40);
  bed.copy_a_block_in_ten_seconds();
  bed.run_async([&](JobRank& rank) {
    bed.write_long_part_of_rank_4(rank);
    finalize(rank);
  });
  EXPECT_TRUE(bed.logs("; SCR_FLUSH_ASYNC_BW (12 B/s for each node) limits the speed"))
      << bed.log_text();
}

/// One rank fails each time it tries. Another rank copies one block in each second.
TEST(SessionStuckCopies, AWaitNamesTheErrorAfterWhichACopyIsTriedAgain) {
  StuckBed bed;
  bed.clock = std::make_unique<SkewedClock>(10);
  bed.settings.async_bytes_per_s = 700;
  bed.hook = [&](int number, const FileOperation& operation) -> Status {
    return number == 2 && stages(operation) ? fail(Code::no_space, "injected") : Status{};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    expect_error(rank, 1, Safety::flushed, -1, Code::not_copied);
  });
  const std::string said = bed.log_text();
  const auto line = said.find("waiting for 1");
  ASSERT_NE(line, std::string::npos) << said;
  const std::string first = said.substr(line, said.find('\n', line) - line);
  const auto why = first.find("it is tried again after an error: ");
  ASSERT_NE(why, std::string::npos) << first;
  EXPECT_NE(first.find("injected", why), std::string::npos) << first;
}

/// Each try of rank 2 copies a file for ten seconds of the clock, and fails at the next one. It
/// is given up when no other rank gets further either; the tenth try would be successful.
TEST(SessionStuckCopies, AWaitEndsWhereEachTryCopiesForLongAndFails) {
  StuckBed bed;
  bed.clock = std::make_unique<SkewedClock>(10);
  bed.settings.block_bytes = 64;
  bed.settings.async_bytes_per_s = 300;  // of two ranks
  constexpr int most_asked = 20;         // a try asks twice
  std::atomic<int> asked = 0;
  bed.hook = [&](int number, const FileOperation& operation) -> Status {
    const bool is_second_file = stages(operation) && operation.path.ends_with(".2.1");
    if (number != 2 || !is_second_file) return {};
    return ++asked < most_asked ? fail(Code::no_space, "injected") : Status{};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    expect_error(rank, 1, Safety::flushed, -1, Code::not_copied);
    EXPECT_LT(asked, most_asked);
    rank.comm.barrier();
    asked = most_asked;
    finalize(rank);
  });
}

/// Rank 5 has copied its part for 7 s of the clock when the first try fails, and the second one
/// copies it once more.
TEST(SessionStuckCopies, ARetryThatGoesWellIsWaitedFor) {
  StuckBed bed;
  bed.clock = std::make_unique<SkewedClock>(2);
  bed.settings.block_bytes = 64;
  bed.settings.async_bytes_per_s = 1000;  // of two ranks
  std::atomic<int> tries = 0;
  bed.hook = [&](int number, const FileOperation& operation) -> Status {
    if (number != 5 || !is_done_marker(operation, 5)) return {};
    return ++tries < 2 ? fail(Code::io, "injected") : Status{};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    finalize(rank);
  });
  EXPECT_TRUE(bed.arrived_by_itself(1)) << bed.log_text();
  EXPECT_EQ(tries, 2);
}

/// The log says whenever a call has waited for ten seconds.
TEST(SessionStuckCopies, ADirectoryThatDoesNotAnswerIsWaitedForOnce) {
  StuckBed bed;
  bed.clock = std::make_unique<SkewedClock>(40);
  Gate gate;
  bed.hold_copies_at(gate);
  Rescue rescue(gate, 15'000);
  bed.run_async([&](JobRank& rank) {
    const auto note = [&](const char* text) {
      if (rank.number() == 0) rank.log.info("{}", text);
      rank.comm.barrier();
    };
    rank.expect_written(1, flag_output);
    EXPECT_FALSE(rank.session->have_restart());
    note("the first call is over");
    EXPECT_FALSE(rank.session->have_restart());
    EXPECT_FALSE(rank.session->datasets().drop("none of that name"));
    expect_error(rank, 1, Safety::flushed, -1, Code::not_copied);
    note("the others are over");
    if (rank.number() == 0) {
      EXPECT_TRUE(rescue.end()) << "a call waited for the directory";
      EXPECT_TRUE(bed.comes_to_be_listed(1));  // SCR_Finalize would not wait until it answers
    }
    rank.comm.barrier();
    finalize(rank);
  });
  const std::string said = bed.log_text();
  const auto first = said.find("the first call is over");
  const auto others = said.find("the others are over");
  ASSERT_LT(first, others) << said;
  EXPECT_LT(said.find("waiting for "), first) << said;
  EXPECT_GE(said.find("waiting for ", first), others) << said;
  EXPECT_TRUE(bed.arrived_by_itself(1)) << said;
}

/// The thread of rank 0 hangs in the call by which it publishes the dataset, and comes back when
/// SCR_Finalize has returned.
TEST(SessionStuckCopies, WhatIsPublishedAfterTheEndIsInTheIndex) {
  StuckBed bed;
  bed.settings.flush_at_end_seconds = 1;
  bed.settings.log_json = true;
  Gate gate;
  RankZeroFirst order;
  bed.hook = [&](int number, const FileOperation& operation) -> Status {
    order.before(number, operation);
    if (!publishes(operation)) return {};
    if (number != 0) return fail(Code::io, "injected");
    gate.pass();
    return {};
  };
  Rescue rescue(gate, 15'000);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_checkpoint | flag_output);
    if (rank.number() == 0) gate.wait_for(1);
    rank.comm.barrier();
    EXPECT_FALSE(rank.session->finalize());
    rank.comm.barrier();
    if (rank.number() != 0) return;
    const auto has_closed_books = [&] {
      const std::string log = read_all(PrefixFolder{bed.settings.prefix}.job().json_log());
      return log.find("FINALIZE") != std::string::npos;
    };
    for (int ms = 0; ms < 10'000 && !has_closed_books(); ++ms) sleep_ms(1);
    EXPECT_TRUE(rescue.end()) << "SCR_Finalize waited for the directory";
  });
  bed.hook = nullptr;
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 1) << bed.log_text();
  bed.expect_own_files(1);
}

}  // namespace
}  // namespace cairn
