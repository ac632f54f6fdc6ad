// What SCR_Finalize does with copies that are not finished: it waits for them, until a time, or
// leaves them to others.
#include <array>

#include "support/safety_bed.hpp"

namespace cairn {
namespace {

class AtEndBed : public AsyncBed {
 public:
  /// So that a copy takes some seconds, a block more than a tenth of one.
  void copy_slowly() { settings.async_bytes_per_s = 1000; }

  bool has_plan(int dataset) const {
    const std::filesystem::path root = settings.prefix + "/.cairn";
    for (const auto& found : std::filesystem::recursive_directory_iterator(root))
      if (found.path().filename() == "dataset" &&
          found.path().string().find(fmt::format("/dataset.{}.", dataset)) != std::string::npos &&
          found.path().string().find("/epoch.") != std::string::npos)
        return true;
    return false;
  }

  /// The datasets that the next run publishes, newest first. It has no time to copy others.
  Names published_by_the_next_run() {
    settings.flush_at_end = FlushAtEnd::wait;
    settings.flush_interval = 1000;
    settings.async_bytes_per_s = 0;
    settings.end_time_s = 0;
    (void)restart(four_nodes());
    return listed();
  }
};

/// Its plan is complete, although it had not even begun.
TEST(SessionAtEnd, ACopyIsLeftToADrainIfTheUserWantsThat) {
  AtEndBed bed;
  bed.settings.flush_interval = 10;
  bed.settings.flush_at_end = FlushAtEnd::leave;
  bed.copy_slowly();
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2, 3}) rank.expect_written(dataset);
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), Names{});
  EXPECT_TRUE(bed.logs("CAIRN_FLUSH_AT_END=leave: not finished: the copy of dataset 3 (ckpt.3)"))
      << bed.log_text();
  EXPECT_TRUE(bed.logs("\"cairn drain\"")) << bed.log_text();
  EXPECT_TRUE(bed.has_plan(3));
  EXPECT_EQ(bed.published_by_the_next_run(), Names{"ckpt.3"});
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 3);
  bed.expect_own_files(3);
}

TEST(SessionAtEnd, AProgramThatWaitsForItsCopiesCanLeaveTheLastOneToo) {
  AtEndBed bed;
  bed.settings.flush_async = false;
  bed.settings.flush_interval = 10;
  bed.settings.flush_at_end = FlushAtEnd::leave;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), Names{});
  EXPECT_TRUE(bed.has_plan(1));
  EXPECT_EQ(bed.published_by_the_next_run(), Names{"ckpt.1"});
}

/// Two are under way, the second has no plan yet, and for a third there is no room.
TEST(SessionAtEnd, AllThatIsLeftIsNamed) {
  AtEndBed bed;
  bed.settings.flush_at_end = FlushAtEnd::leave;
  bed.settings.flush_interval = 10;
  bed.copy_slowly();
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    rank.expect_written(2, flag_output);
    rank.expect_written(3);
    finalize(rank);
  });
  EXPECT_TRUE(
      bed.logs("the copies of dataset 1 (ckpt.1), dataset 2 (ckpt.2), dataset 3 (ckpt.3) to "))
      << bed.log_text();
  EXPECT_TRUE(bed.logs("\"cairn scavenge\"")) << "one has no plan";
  EXPECT_TRUE(bed.has_plan(1) && bed.has_plan(2));
  EXPECT_EQ(bed.published_by_the_next_run(), (Names{"ckpt.2", "ckpt.1"}));
  for (const int dataset : {1, 2}) bed.expect_own_files(dataset);
}

/// A thread looks there last, and no one waits for it without an end.
TEST(SessionAtEnd, TheProgramItselfDoesNotLookAtADirectoryThatHasAllAndMayHang) {
  SafetyBed bed;
  bed.settings.flush_interval = 1;
  std::array<std::atomic<std::thread::id>, 8> programs{};
  std::mutex mutex;
  Names looks;
  bed.hook = [&](int rank, const FileOperation& operation) -> Status {
    const bool is_there = operation.path.starts_with(bed.settings.prefix);
    if (is_there && programs.at(static_cast<std::size_t>(rank)) == std::this_thread::get_id()) {
      const std::scoped_lock lock(mutex);
      looks.push_back(fmt::format("{} {}", operation.name, operation.path));
    }
    return {};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    expect_reached(rank, 1, Safety::flushed, -1);
    programs.at(static_cast<std::size_t>(rank.number())) = std::this_thread::get_id();
    finalize(rank);
  });
  EXPECT_EQ(looks, Names{});
}

TEST(SessionAtEnd, WhatIsThereAlreadyIsNotNamed) {
  AtEndBed bed;
  bed.settings.flush_at_end = FlushAtEnd::leave;
  bed.settings.flush_interval = 1;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    bed.wait_until_listed(1);
    finalize(rank);
  });
  EXPECT_FALSE(bed.logs("not finished")) << bed.log_text();
  bed.expect_own_files(1);
}

void expect_time_is_over(JobRank& rank, double longest_s) {
  const std::int64_t from_us = rank.clock.steady_us();
  const Status ended = rank.session->finalize();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Code::not_copied) << ended.error().text;
  EXPECT_NE(ended.error().text.find("dataset 2 (ckpt.2)"), std::string::npos) << ended.error().text;
  EXPECT_NE(ended.error().text.find("cairn drain"), std::string::npos) << ended.error().text;
  EXPECT_LT(static_cast<double>(rank.clock.steady_us() - from_us) * 1e-6, longest_s);
}

TEST(SessionAtEnd, TheWaitEndsAfterTheTimeThatTheUserGives) {
  AtEndBed bed;
  bed.settings.flush_at_end_seconds = 1;
  bed.copy_slowly();
  std::atomic<std::int64_t> from_us = 0;
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    from_us = rank.clock.steady_us();
    expect_time_is_over(rank, 10);
    EXPECT_GE(rank.clock.steady_us() - from_us, 900'000);
  });
  EXPECT_EQ(bed.listed(), Names{});
  EXPECT_TRUE(bed.has_plan(2));
  EXPECT_EQ(bed.published_by_the_next_run(), Names{"ckpt.2"});
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

TEST(SessionAtEnd, TheWaitEndsBeforeTheAllocation) {
  AtEndBed bed;
  bed.copy_slowly();
  bed.settings.end_time_s = bed.clock->now_us() / 1'000'000 + 8;
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    expect_time_is_over(rank, 7);
  });
  EXPECT_TRUE(bed.has_plan(2));
  EXPECT_EQ(bed.published_by_the_next_run(), Names{"ckpt.2"});
}

/// The copy of the first checkpoint takes 8.6 s, that of the second 7.4 s.
class TwoInFlightBed : public AtEndBed {
 public:
  TwoInFlightBed() {
    settings.flush_interval = 1;
    settings.block_bytes = 64;
    settings.async_bytes_per_s = 1000;
    clock = std::make_unique<SkewedClock>(4);
  }

  /// Two checkpoints, the second of them with the names of the first on rank `same_names`; then the
  /// end with so many seconds left. Returns the error of the end.
  std::string end_with(int seconds, int same_names = -1) {
    std::string left;
    settings.flush_at_end_seconds = seconds;
    std::atomic<int> staging = 0;
    hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
      staging += stages(operation) ? 1 : 0;
      return {};
    };
    run_async([&](JobRank& rank) {
      rank.expect_written(4);
      while (staging < 8) sleep_ms(1);
      rank.clock.sleep_us(2'000'000);
      rank.comm.barrier();
      ASSERT_TRUE(rank.session->start_output("ckpt.1", flag_checkpoint));
      ASSERT_TRUE(rank.write_files(rank.number() == same_names ? 4 : 1));
      ASSERT_TRUE(rank.session->complete_output(true));
      const Status ended = rank.session->finalize();
      if (rank.number() == 0 && !ended) left = ended.error().text;
    });
    hook = nullptr;
    return left;
  }
};

TEST(SessionAtEnd, TheNewerCheckpointGoesFirstWhereTheTimeIsTooShortForBoth) {
  TwoInFlightBed bed;
  const std::string left = bed.end_with(12);
  EXPECT_EQ(bed.listed(), Names{"ckpt.1"}) << bed.log_text();
  EXPECT_TRUE(bed.logs("(ckpt.1) is copied before dataset 1 (ckpt.4)")) << bed.log_text();
  EXPECT_TRUE(left.starts_with("not finished: the copy of dataset 1 (ckpt.4) to ")) << left;
  EXPECT_TRUE(bed.has_plan(1));
  EXPECT_EQ(bed.published_by_the_next_run(), (Names{"ckpt.1", "ckpt.4"}));
  bed.expect_own_files(1);
  bed.expect_own_files(4);
}

TEST(SessionAtEnd, TheOlderCheckpointGoesFirstWhereTheTimeSufficesForBoth) {
  TwoInFlightBed bed;
  EXPECT_EQ(bed.end_with(120), "");
  EXPECT_EQ(bed.listed(), (Names{"ckpt.1", "ckpt.4"}));
  EXPECT_FALSE(bed.logs("is copied before")) << bed.log_text();
}

/// Then the older one comes nearer to its end, for the drain that finishes it.
TEST(SessionAtEnd, TheOlderCheckpointGoesFirstWhereTheTimeSufficesForNeither) {
  TwoInFlightBed bed;
  EXPECT_NE(bed.end_with(5), "");
  EXPECT_EQ(bed.listed(), Names{});
  EXPECT_FALSE(bed.logs("is copied before")) << bed.log_text();
}

/// Files of the older one must not take the place of those of the newer. One rank is enough.
TEST(SessionAtEnd, TheOlderCheckpointGoesFirstWhereTheNewerOneTakesItsNames) {
  TwoInFlightBed bed;
  EXPECT_NE(bed.end_with(12, 5), "");
  EXPECT_EQ(bed.listed(), Names{"ckpt.4"}) << bed.log_text();
  EXPECT_FALSE(bed.logs("is copied before")) << bed.log_text();
}

/// No rank can write before the copies are given up, and each can from then on.
class GivenUpBed : public AtEndBed {
 public:
  GivenUpBed() {
    clock = std::make_unique<SkewedClock>(20);
    settings.block_bytes = 64;
    settings.flush_interval = 10;
    hook = [this](int /*rank*/, const FileOperation& operation) -> Status {
      const bool is_staged = operation.path.find("/.cairn.") != std::string::npos;
      if (operation.name == "remove_file" && is_staged) is_given_up_ = true;
      if (operation.path == PrefixFolder{settings.prefix}.owner() && is_given_up_)
        sleep_ms(answers_after_ms);
      return stages(operation) && !is_given_up_ ? fail(Code::io, "injected") : Status{};
    };
  }

  /// Rank 2 can never write files with that in their paths.
  void refuse(const std::string& what) {
    hook = [what](int rank, const FileOperation& operation) -> Status {
      const bool is_refused = operation.path.find(what) != std::string::npos;
      return rank == 2 && stages(operation) && is_refused ? fail(Code::io, "injected") : Status{};
    };
  }

  /// The error of the end of a run that writes these outputs, then a checkpoint. One of these calls
  /// may name an error before.
  std::string end_with(int seconds, const std::vector<int>& outputs = {1}, int checkpoint = 0) {
    std::string left;
    settings.flush_at_end_seconds = seconds;
    run_async([&](JobRank& rank) {
      for (const int output : outputs) (void)rank.write(output, flag_output);
      if (checkpoint > 0) (void)rank.write(checkpoint);
      const Status ended = rank.session->finalize();
      if (rank.number() == 0 && !ended) left = ended.error().text;
    });
    hook = nullptr;
    return left;
  }

  std::atomic<int> answers_after_ms = 0;  ///< the prefix directory, once copies were given up

 private:
  std::atomic<bool> is_given_up_ = false;
};

/// It takes some minutes, and a copy that the program makes itself would not end before.
TEST(SessionAtEnd, WhatWasGivenUpIsCopiedAgainNoLongerThanTheTime) {
  GivenUpBed bed;
  bed.settings.flush_bytes_per_s = 20;
  const std::string left = bed.end_with(60);
  EXPECT_TRUE(left.starts_with("not finished: the copy of dataset 1 (ckpt.1) to ")) << left;
  EXPECT_EQ(bed.listed(), Names{});
  EXPECT_TRUE(bed.has_plan(1));
  bed.settings.flush_bytes_per_s = 0;
  EXPECT_EQ(bed.published_by_the_next_run(), Names{"ckpt.1"});
}

TEST(SessionAtEnd, WhatWasGivenUpIsCopiedAgainWhereTheTimeSuffices) {
  GivenUpBed bed;
  EXPECT_EQ(bed.end_with(3600), "");
  EXPECT_TRUE(bed.arrived_by_itself(1)) << bed.log_text();
}

/// There is no other try. By the clock of this test it answers after ten seconds.
TEST(SessionAtEnd, ASlowAnswerIsWaitedForBeforeTheLastTry) {
  GivenUpBed bed;
  bed.answers_after_ms = 500;
  EXPECT_EQ(bed.end_with(3600), "");
  EXPECT_TRUE(bed.arrived_by_itself(1)) << bed.log_text();
}

/// Once before the last try, and once by that.
TEST(SessionAtEnd, ACheckpointThatIsAnOutputTooIsTriedOnceMoreOnly) {
  GivenUpBed bed;
  bed.settings.log_json = true;
  bed.settings.flush_at_end_seconds = 3600;
  bed.refuse("/ckpt.1/");
  bed.run_async([](JobRank& rank) {
    (void)rank.write(1, flag_checkpoint | flag_output);
    EXPECT_FALSE(rank.session->finalize());
  });
  EXPECT_EQ(bed.logged_events("ASYNC_FLUSH_FAIL"), 2);
}

TEST(SessionAtEnd, TheLogSaysWhyWhatWasGivenUpCannotBeCopied) {
  GivenUpBed bed;
  bed.refuse("/ckpt.");
  const std::string left = bed.end_with(3600);
  EXPECT_TRUE(left.starts_with("dataset 1 (ckpt.1) is not in ")) << left;
  EXPECT_TRUE(bed.logs("(ckpt.1) stays in the cache, because it cannot be copied to "))
      << bed.log_text();
  EXPECT_TRUE(bed.logs("injected")) << bed.log_text();
}

TEST(SessionAtEnd, AllThatCannotBeCopiedIsNamed) {
  GivenUpBed bed;
  bed.refuse("/ckpt.");
  const std::string left = bed.end_with(3600, {1, 2}, 3);
  EXPECT_TRUE(
      left.starts_with("dataset 1 (ckpt.1), dataset 2 (ckpt.2), dataset 3 (ckpt.3) are not in "))
      << left;
}

/// The second is in flight with the first, and for the third there was no room.
TEST(SessionAtEnd, WhatCannotBeCopiedTakesNoOtherWithIt) {
  GivenUpBed bed;
  bed.refuse("/ckpt.1/");
  const std::string left = bed.end_with(3600, {1, 2}, 3);
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.2"})) << bed.log_text();
  EXPECT_TRUE(left.starts_with("dataset 1 (ckpt.1) is not in ")) << left;
}

/// A newer output is there, so the program copies the checkpoint itself. That takes two minutes.
TEST(SessionAtEnd, ACopyThatComesLateEndsWithTheTimeToo) {
  AtEndBed bed;
  bed.clock = std::make_unique<SkewedClock>(20);
  bed.settings.block_bytes = 64;
  bed.settings.flush_interval = 10;
  bed.settings.async_bytes_per_s = std::uint64_t{1} << 40;
  bed.settings.flush_bytes_per_s = 60;
  bed.settings.flush_at_end_seconds = 30;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2, flag_output);
    expect_reached(rank, 2, Safety::flushed, -1);
    const Status ended = rank.session->finalize();
    ASSERT_FALSE(ended);
    const std::string& left = ended.error().text;
    EXPECT_TRUE(left.starts_with("not finished: the copy of dataset 1 (ckpt.1) to ")) << left;
    EXPECT_NE(left.find("\"cairn scavenge\""), std::string::npos) << left;
  });
  EXPECT_EQ(bed.listed(), Names{"ckpt.2"});
  EXPECT_FALSE(bed.logs("stays in the cache")) << bed.log_text();
  bed.settings.flush_bytes_per_s = 0;
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionAtEnd, WithTimeLeftAllIsThere) {
  AtEndBed bed;
  bed.settings.flush_interval = 10;
  bed.settings.end_time_s = bed.clock->now_us() / 1'000'000 + 3600;
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2, 3}) rank.expect_written(dataset);
    rank.expect_written(4, flag_output);
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.4", "ckpt.3"}));
  for (const int dataset : {3, 4}) bed.expect_own_files(dataset);
}

/// The program waits for its copies: none is begun after the time.
TEST(SessionAtEnd, NoCopyBeginsWithoutTime) {
  AtEndBed bed;
  bed.settings.flush_async = false;
  bed.settings.flush_interval = 10;
  bed.settings.end_time_s = bed.clock->now_us() / 1'000'000 + 9;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    const Status ended = rank.session->finalize();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, Code::not_copied);
  });
  EXPECT_EQ(bed.listed(), Names{});
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionAtEnd, NoCopyBeginsWhenAnotherHasTakenTheTime) {
  SafetyBed bed;
  bed.settings.flush_async = false;
  bed.settings.flush_at_end_seconds = 30;
  auto moved = std::make_unique<MovedClock>();
  MovedClock& time = *moved;
  bed.clock = std::move(moved);
  std::atomic<bool> is_full = true;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    if (publishes(operation)) time.pass_seconds(60);
    return is_full && stages(operation) ? fail(Code::no_space, "injected") : Status{};
  };
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_not_copied(dataset, flag_output);
    rank.comm.barrier();
    is_full = false;
    rank.comm.barrier();
    const Status ended = rank.session->finalize();
    ASSERT_FALSE(ended);
    EXPECT_NE(ended.error().text.find("dataset 2 (ckpt.2)"), std::string::npos)
        << ended.error().text;
  });
  EXPECT_EQ(bed.listed(), Names{"ckpt.1"});
}

TEST(TimeForCopies, IsTheShortestThatIsKnown) {
  const std::int64_t now_us = 1'000'000'000'000;
  Settings settings;
  EXPECT_LT(time_for_copies_us({}, settings, now_us), 0) << "as long as it takes";
  settings.end_time_s = 1'000'600;
  EXPECT_EQ(time_for_copies_us({}, settings, now_us), 590'000'000);
  HaltRecord halt;
  halt.exit_before_s = 1'000'100;
  EXPECT_EQ(time_for_copies_us(halt, settings, now_us), 90'000'000);
  settings.flush_at_end_seconds = 30;
  EXPECT_EQ(time_for_copies_us(halt, settings, now_us), 30'000'000);
  halt.exit_before_s = 1'000'005;
  EXPECT_EQ(time_for_copies_us(halt, settings, now_us), 0);
  halt.exit_before_s = 1'000'000;
  settings.end_time_s = 999'000;
  EXPECT_EQ(time_for_copies_us(halt, settings, now_us), 30'000'000) << "they have passed";
}

}  // namespace
}  // namespace cairn
