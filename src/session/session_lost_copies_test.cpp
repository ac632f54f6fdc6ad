// What was to be copied to the prefix directory, and is lost in the caches before: the program
// learns of it from the next Complete, or from Finalize.
#include <filesystem>

#include "session/losses.hpp"
#include "support/safety_bed.hpp"

namespace cairn {
namespace {

/// No copy gets anywhere until datasets are damaged, beyond repair.
class LostBed : public SafetyBed {
 public:
  LostBed() {
    settings.log_json = true;
    settings.checkpoints[0].scheme = Scheme::single;
    settings.stores[0].count = 9;
    hold_copies_at(gate_);
  }

  /// By all ranks. Each is at the gate with the copy of the first one that it has written.
  void lose(JobRank& rank, const std::vector<int>& datasets) {
    change(rank, [&] {
      for (const int dataset : datasets) flip_bit(file_of(dataset));
    });
  }
  /// The same, where that file is gone.
  void remove_file(JobRank& rank, int dataset) {
    change(rank, [&] { std::filesystem::remove(file_of(dataset)); });
  }
  /// The same, where that file has lost its end.
  void shorten_file(JobRank& rank, int dataset) {
    change(rank, [&] { std::filesystem::resize_file(file_of(dataset), 1); });
  }
  std::string file_of(int dataset) {
    return fmt::format("{}/files/ckpt.{}/rank 2.0", parts("n1", dataset).front(), dataset);
  }

 private:
  void change(JobRank& rank, const std::function<void()>& files) {
    rank.comm.barrier();
    if (rank.number() == 0) {
      gate_.wait_for(8);
      files();
      gate_.open();
    }
    rank.comm.barrier();
  }

  Gate gate_;
};

void expect_lost(const Status& told, const std::vector<int>& datasets) {
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, Code::lost) << told.error().text;
  for (const int dataset : {1, 2, 3}) {
    const bool is_lost = std::find(datasets.begin(), datasets.end(), dataset) != datasets.end();
    const std::string words = fmt::format("dataset {0} (ckpt.{0}) is lost", dataset);
    EXPECT_EQ(told.error().text.find(words) != std::string::npos, is_lost) << told.error().text;
  }
  EXPECT_EQ(told.error().text.find("safe"), std::string::npos) << told.error().text;
}

struct Between {
  const char* name;
  std::function<void(JobRank&)> call;  ///< it finds the loss
};

void PrintTo(const Between& between, std::ostream* out) { *out << between.name; }

class SessionLostCopy : public testing::TestWithParam<Between> {
 protected:
  /// Of two outputs the first is lost, and a call finds that.
  void run(const std::function<void(JobRank&)>& more) {
    bed_.run_async([&](JobRank& rank) {
      for (const int dataset : {1, 2}) rank.expect_written(dataset, flag_output);
      bed_.lose(rank, {1});
      GetParam().call(rank);
      more(rank);
    });
    EXPECT_TRUE(bed_.is_listed(2));
    EXPECT_FALSE(bed_.is_listed(1));
    EXPECT_FALSE(bed_.logs("Cairn goes on trying")) << bed_.log_text();
    EXPECT_EQ(bed_.logged_events("LOST"), 1) << "cairn run must not take it for left";
  }

  LostBed bed_;
};

TEST_P(SessionLostCopy, IsReturnedByTheNextCompleteAndNoOtherOne) {
  run([](JobRank& rank) {
    expect_lost(rank.write(3, flag_output), {1});
    rank.expect_written(4, flag_output);
    finalize(rank);
  });
}

TEST_P(SessionLostCopy, IsReturnedByFinalizeIfNoCompleteComesBefore) {
  run([](JobRank& rank) { expect_lost(rank.session->finalize(), {1}); });
}

void invalid_output(JobRank& rank) {
  EXPECT_TRUE(rank.session->have_restart());
  ASSERT_TRUE(rank.session->start_output("ckpt.9", flag_output));
  const Status completed = rank.session->complete_output(false);
  ASSERT_FALSE(completed);
  EXPECT_EQ(completed.error().code, Code::invalid) << "of its own dataset";
}

INSTANTIATE_TEST_SUITE_P(
    After, SessionLostCopy,
    testing::Values(
        Between{"HaveRestart", [](JobRank& rank) { EXPECT_TRUE(rank.session->have_restart()); }},
        Between{"Current",
                [](JobRank& rank) { (void)rank.session->datasets().current("none of that name"); }},
        Between{"Delete",
                [](JobRank& rank) { EXPECT_TRUE(rank.session->datasets().remove("ckpt.1")); }},
        Between{"AWaitForIt",
                [](JobRank& rank) { expect_error(rank, 1, Safety::flushed, -1, Code::lost); }},
        Between{"AWaitForAnother",
                [](JobRank& rank) { expect_reached(rank, 2, Safety::flushed, -1); }},
        Between{"ACompleteThatFails", invalid_output}),
    [](const auto& used) { return std::string(used.param.name); });

/// None of the later ones is due.
TEST(SessionLostCopies, ACompleteReturnsWhatItFindsItself) {
  LostBed bed;
  bed.settings.flush_interval = 100;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    bed.lose(rank, {1});
    Status completed;
    for (int dataset = 2; completed; ++dataset) completed = rank.write(dataset);
    expect_lost(completed, {1});
    finalize(rank);
  });
  EXPECT_FALSE(bed.logs("Cairn goes on trying")) << bed.log_text();
}

TEST(SessionLostCopies, FinalizeReturnsWhatItFindsItself) {
  LostBed bed;
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2, 3}) rank.expect_written(dataset);
    bed.lose(rank, {1});
    expect_lost(rank.session->finalize(), {1});
  });
  EXPECT_EQ(bed.listed(), Names{"ckpt.3"});
}

TEST(SessionLostCopies, AllOfThemAreNamed) {
  LostBed bed;
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset, flag_output);
    bed.lose(rank, {1, 2});
    expect_lost(rank.session->finalize(), {1, 2});
  });
  EXPECT_EQ(bed.listed(), Names{});
  EXPECT_EQ(bed.logged_events("LOST"), 2);
}

/// The older one was not due before.
TEST(SessionLostCopies, FinalizeCopiesTheNextNewestCheckpoint) {
  LostBed bed;
  bed.settings.flush_interval = 2;
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    bed.lose(rank, {2});
    expect_lost(rank.session->finalize(), {2});
  });
  EXPECT_EQ(bed.listed(), Names{"ckpt.1"});
}

/// Nothing of it is in the caches for a drain.
TEST(SessionLostCopies, FinalizeDoesNotCallItUnfinished) {
  LostBed bed;
  bed.settings.flush_at_end = FlushAtEnd::leave;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    bed.lose(rank, {1});
    while (wait_for(rank, 1, Safety::flushed, 0)) sleep_ms(1);  // a look does not give it up
    expect_lost(rank.session->finalize(), {1});
  });
  EXPECT_FALSE(bed.logs("The caches have all of it")) << bed.log_text();
}

TEST(SessionLostCopies, NoWaitThatCopiesItselfCallsItSafe) {
  LostBed bed;
  bed.settings.flush_async = false;
  std::atomic<bool> is_full = true;
  bed.fill_while(is_full);
  bed.run_async([&](JobRank& rank) {
    rank.expect_not_copied(1, flag_output);
    rank.comm.barrier();
    is_full = false;
    if (rank.number() == 2) flip_bit(bed.parts("n1", 1).front() + "/files/ckpt.1/rank 2.0");
    rank.comm.barrier();
    expect_error(rank, 1, Safety::flushed, -1, Code::lost);
    expect_lost(rank.session->finalize(), {1});
  });
}

/// Where its copy could not begin before.
TEST(SessionLostCopies, WhatARestartFindsIsReturnedToo) {
  LostBed bed;
  bed.settings.flush_async = false;
  std::atomic<bool> is_full = true;
  bed.fill_while(is_full);
  bed.run_async([&](JobRank& rank) {
    rank.expect_not_copied(1);
    rank.expect_not_copied(2, flag_checkpoint | flag_output);
  });
  bed.run_async([&](JobRank& rank) {
    EXPECT_TRUE(rank.session->have_restart());
    rank.comm.barrier();
    if (rank.number() == 2) flip_bit(bed.parts("n1", 2).front() + "/files/ckpt.2/rank 2.0");
    rank.comm.barrier();
    EXPECT_FALSE(rank.session->start_restart());
    rank.comm.barrier();
    is_full = false;
    rank.comm.barrier();
    expect_lost(rank.write(3), {2});
    (void)rank.session->finalize();
  });
}

/// It is in the prefix directory, which cannot be read at SCR_Init, and is damaged in the cache.
class AwayBed : public SafetyBed {
 public:
  AwayBed() {
    settings.log_json = true;
    settings.checkpoints[0].scheme = Scheme::single;
    settings.stores[0].count = 9;
    run_async([](JobRank& rank) {
      rank.expect_written(1, flag_checkpoint | flag_output);
      finalize(rank);
    });
    hook = [this](int /*rank*/, const FileOperation& operation) -> Status {
      const bool fails = is_away_ && operation.path.starts_with(settings.prefix);
      return fails ? fail(Code::io, "injected at {}", operation.path) : Status{};
    };
    is_away_ = true;
  }

  /// By all ranks.
  void damage(JobRank& rank) {
    rank.comm.barrier();
    if (rank.number() == 2) flip_bit(parts("n1", 1).front() + "/files/ckpt.1/rank 2.0");
    rank.comm.barrier();
  }
  void come_back(JobRank& rank) {
    rank.comm.barrier();
    is_away_ = false;
    rank.comm.barrier();
  }

 private:
  std::atomic<bool> is_away_ = false;
};

TEST(SessionLostCopies, WhatIsFoundInThePrefixDirectoryLaterIsNot) {
  for (const bool is_back_at_restart : {true, false}) {
    AwayBed bed;
    bed.run_async([&](JobRank& rank) {
      EXPECT_TRUE(rank.session->have_restart());
      bed.damage(rank);
      if (is_back_at_restart) bed.come_back(rank);
      EXPECT_FALSE(rank.session->start_restart());
      if (!is_back_at_restart) bed.come_back(rank);
      rank.expect_written(2);
      finalize(rank);
    });
    EXPECT_FALSE(bed.logs("is lost")) << bed.log_text();
    EXPECT_EQ(bed.logged_events("LOST"), 0);
  }
}

/// SCR_Start_restart looks there.
TEST(SessionLostCopies, WhatARestartHasSeenInThePrefixDirectoryIsNot) {
  AwayBed bed;
  bed.settings.flush_interval = 100;
  bed.run_async([&](JobRank& rank) {
    EXPECT_TRUE(rank.session->have_restart());
    bed.damage(rank);
    bed.come_back(rank);
    EXPECT_FALSE(rank.session->start_restart());
    rank.expect_written(2);
    (void)rank.session->finalize();
  });
}

/// The newest checkpoint is found damaged when it is read for its copy; the one before is whole.
/// Returns what the end of the run says.
Error end_with_newest_lost(JobRank& rank, SafetyBed& bed) {
  for (const int dataset : {1, 2}) rank.expect_written(dataset);
  rank.comm.barrier();
  if (rank.number() == 0) flip_bit(bed.parts("n1", 2).front() + "/files/ckpt.2/rank 2.0");
  rank.comm.barrier();
  Status ended = rank.session->finalize();
  EXPECT_FALSE(ended);
  if (ended) return {};
  EXPECT_EQ(ended.error().code, Code::lost) << ended.error().text;
  return ended.error();
}

TEST(SessionLostCopies, TheEndOfTheRunCopiesTheNextNewestInstead) {
  for (const bool is_async : {false, true}) {
    SafetyBed bed;
    bed.settings.checkpoints[0].scheme = Scheme::single;
    bed.settings.stores[0].count = 9;
    bed.settings.flush_interval = 100;
    bed.settings.flush_async = is_async;
    bed.run_async([&](JobRank& rank) { (void)end_with_newest_lost(rank, bed); });
    EXPECT_EQ(bed.listed(), Names{"ckpt.1"}) << bed.log_text();
  }
}

/// The call returns one code, so the text names what is lost and what is safe.
TEST(SessionLostCopies, TheEndOfTheRunNamesTheNextNewestIfThatHasNoRoom) {
  SafetyBed bed;
  bed.settings.log_json = true;
  bed.settings.checkpoints[0].scheme = Scheme::single;
  bed.settings.stores[0].count = 9;
  bed.settings.flush_interval = 100;
  bed.settings.flush_async = false;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    const bool is_copy = operation.path.starts_with(bed.settings.prefix) &&
                         operation.path.find("ckpt.1") != std::string::npos;
    return is_copy ? fail(Code::no_space, "injected at {}", operation.path) : Status{};
  };
  bed.run_async([&](JobRank& rank) {
    const Error ended = end_with_newest_lost(rank, bed);
    for (const std::string& words : {std::string("dataset 2 (ckpt.2) is lost"),
                                     "dataset 1 (ckpt.1) is not in " + bed.settings.prefix})
      EXPECT_NE(ended.text.find(words), std::string::npos) << ended.text;
  });
  EXPECT_EQ(bed.listed(), Names{}) << bed.log_text();
  EXPECT_EQ(bed.logged_events("LOST"), 1) << "the other one is in the caches";
}

TEST(SessionLostCopies, NoOtherCodeHidesALoss) {
  const Status lost = fail(Code::lost, "one is lost");
  const Status safe = fail(Code::not_copied, "one is safe");
  const Status full = fail(Code::no_space, "one has no room");
  EXPECT_EQ(joined(lost, safe).error().code, Code::lost);
  EXPECT_EQ(joined(safe, lost).error().code, Code::lost);
  EXPECT_EQ(joined(safe, lost).error().text, "one is safe; one is lost");
  EXPECT_EQ(joined(safe, full).error().code, Code::not_copied);
}

/// A cleaner of the node has removed it.
TEST(SessionLostCopies, AFileThatIsGoneIsMadeAnewForItsCopy) {
  LostBed bed;
  bed.settings.checkpoints[0].scheme = Scheme::xor_;
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset, flag_output);
    bed.remove_file(rank, 2);
    expect_reached(rank, 2, Safety::flushed);
    rank.expect_written(3, flag_output);
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.2", "ckpt.1"}));
  EXPECT_TRUE(bed.logs("were repaired")) << bed.log_text();
}

/// No scheme has the file of the second of two outputs any more.
void expect_second_lost(void (LostBed::*harm)(JobRank&, int)) {
  LostBed bed;
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset, flag_output);
    (bed.*harm)(rank, 2);
    expect_error(rank, 2, Safety::flushed, -1, Code::lost);
    expect_lost(rank.write(3, flag_output), {2});
    expect_reached(rank, 3, Safety::flushed);
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.1"}));
}

TEST(SessionLostCopies, AFileThatIsGoneAndNoSchemeHasIsLost) {
  expect_second_lost(&LostBed::remove_file);
}

TEST(SessionLostCopies, AFileThatIsTooShortAndNoSchemeHasIsLost) {
  expect_second_lost(&LostBed::shorten_file);
}

/// The scheme has what is needed to repair dataset 2 in the part of rank 2, but its store has no
/// room while this is full.
class FullStore {
 public:
  explicit FullStore(AsyncBed& bed) {
    bed.settings.checkpoints[0].scheme = Scheme::xor_;
    bed.hook = [this, before = bed.hook](int rank, const FileOperation& operation) -> Status {
      const bool takes_room = operation.name == "create" || operation.name == "resize" ||
                              operation.name == "write" || operation.name == "make_folder" ||
                              operation.name == "open_for_update";
      const bool is_part = rank == 2 && operation.path.find(of) != std::string::npos;
      if (is_full_ && takes_room && is_part)
        return fail(Code::no_space, "injected: cannot write {}", operation.path);
      return before(rank, operation);
    };
  }
  void fill(JobRank& rank) { set(rank, is_full_, true); }
  void empty() { is_full_ = false; }
  /// All ranks see the same.
  static void set(JobRank& rank, std::atomic<bool>& flag, bool value) {
    rank.comm.barrier();
    flag = value;
    rank.comm.barrier();
  }

  std::string of = "/dataset.2.";  ///< in the paths for which there is no room

 private:
  std::atomic<bool> is_full_ = false;
};

class SessionUnrepairedAtRestart : public testing::Test {
 protected:
  /// Datasets 1 and 2 are only in the cache. The second is offered at the next restart, and then a
  /// file of it is gone.
  void run(std::uint32_t flags, const std::function<void(JobRank&)>& rank_main) {
    bed_.settings.flush_async = false;
    bed_.run_async([&](JobRank& rank) {
      rank.expect_not_copied(1);
      rank.expect_not_copied(2, flags);
    });
    bed_.run_async([&](JobRank& rank) {
      EXPECT_TRUE(rank.session->have_restart());
      store_.fill(rank);
      if (rank.number() == 2)
        std::filesystem::remove(bed_.parts("n1", 2).front() + "/files/ckpt.2/rank 2.0");
      rank.comm.barrier();
      EXPECT_FALSE(rank.session->start_restart());
      FullStore::set(rank, is_prefix_full_, false);
      rank_main(rank);
      rank.comm.barrier();
    });
    store_.empty();
  }
  void expect_copied_by_next_run() {
    EXPECT_FALSE(bed_.is_listed(2));
    bed_.run_async([&](JobRank& rank) { finalize(rank); });
    EXPECT_TRUE(bed_.is_listed(2)) << bed_.log_text();
  }

  std::atomic<bool> is_prefix_full_ = true;
  SafetyBed bed_;
  const bool is_filled_ = (bed_.fill_while(is_prefix_full_), true);
  FullStore store_{bed_};
};

void expect_unrepaired(const Status& told) {
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, Code::not_copied) << told.error().text;
  EXPECT_NE(told.error().text.find("dataset 2 (ckpt.2) was not copied"), std::string::npos)
      << told.error().text;
  EXPECT_NE(told.error().text.find("cannot be repaired now"), std::string::npos)
      << told.error().text;
}

TEST(SessionUnrepairedCopies, AnOutputIsCopiedByTheNextRunAndHoldsNoOtherBack) {
  LostBed bed;
  FullStore store(bed);
  bed.settings.log_json = true;
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset, flag_output);
    store.fill(rank);
    bed.remove_file(rank, 2);
    expect_error(rank, 2, Safety::flushed, -1, Code::no_space);
    EXPECT_EQ(safety(rank, 2), Safety::none) << "the loss of a node would lose it";
    expect_unrepaired(rank.write(3, flag_output));
    rank.expect_written(4);
    for (const int dataset : {3, 4}) expect_reached(rank, dataset, Safety::flushed);
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.4", "ckpt.3", "ckpt.1"}));
  EXPECT_EQ(bed.logged_events("LOST"), 0);
  store.empty();
  bed.run_async([&](JobRank& rank) { finalize(rank); });
  EXPECT_TRUE(bed.is_listed(2)) << bed.log_text();
}

/// Another set lacks more than its scheme has.
TEST(SessionUnrepairedCopies, WhatIsLostInOneSetIsLost) {
  LostBed bed;
  FullStore store(bed);
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset, flag_output);
    store.fill(rank);
    if (rank.number() % 2 == 1)
      for (const std::string& part : bed.parts(rank.settings.node_name, 2))
        std::filesystem::remove(fmt::format("{}/files/ckpt.2/rank {}.0", part, rank.number()));
    bed.remove_file(rank, 2);
    expect_error(rank, 2, Safety::flushed, -1, Code::lost);
    expect_lost(rank.write(3, flag_output), {2});
    finalize(rank);
  });
}

TEST_F(SessionUnrepairedAtRestart, AnOutputIsCopiedByTheNextRun) {
  run(flag_checkpoint | flag_output, [&](JobRank& rank) {
    expect_unrepaired(rank.write(3, flag_output));
    finalize(rank);
  });
  expect_copied_by_next_run();
}

TEST_F(SessionUnrepairedAtRestart, AnOutputGivesNoRoomToTheNextDataset) {
  store_.of = "/dataset.";
  run(flag_checkpoint | flag_output, [&](JobRank& rank) {
    const Status started = rank.session->start_output("ckpt.3", flag_checkpoint);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::no_space) << started.error().text;
    EXPECT_NE(started.error().text.find("the store holds 1 output"), std::string::npos)
        << started.error().text;
    expect_unrepaired(rank.session->finalize());
  });
  expect_copied_by_next_run();
}

/// Checkpoint 1 is whole: there is a run to go back to.
TEST_F(SessionUnrepairedAtRestart, ACheckpointGivesItsRoomToTheNextDataset) {
  store_.of = "/dataset.";
  run(flag_checkpoint, [&](JobRank& rank) {
    EXPECT_FALSE(rank.session->start_output("ckpt.3", flag_checkpoint));
    expect_unrepaired(rank.session->finalize());
  });
  EXPECT_TRUE(bed_.logs("the leftovers of dataset 2, from which no run can restart, are removed"))
      << bed_.log_text();
  EXPECT_TRUE(bed_.parts("n1", 2).empty());
}

TEST_F(SessionUnrepairedAtRestart, NothingIsPromisedOfACheckpointThatGoes) {
  run(flag_checkpoint, [&](JobRank& rank) {
    const Status told = rank.write(3);
    expect_unrepaired(told);
    EXPECT_EQ(told.error().text.find("try again"), std::string::npos) << told.error().text;
    finalize(rank);
  });
}

}  // namespace
}  // namespace cairn
