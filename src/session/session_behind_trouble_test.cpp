// What becomes of a dataset that was written, and cannot be protected behind the program.
#include <atomic>

#include "support/behind_bed.hpp"
#include "support/every_death.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

bool concerns_parity(const FileOperation& operation) {
  const auto is_parity = [](std::string_view path) {
    return path.find("/parity.") != std::string_view::npos;
  };
  return is_parity(operation.path) || is_parity(operation.to);
}

/// SCR_Need_checkpoint says yes in each call, unless it must not.
void set_always_due(JobBed& bed) {
  bed.settings.checkpoint_seconds = 1;
  bed.clock = std::make_unique<SkewedClock>(1'000'000);
}

// --- a changed file ---

/// The program changes a file of rank 2 while dataset 2 is protected. What the next Complete says.
Error change_behind(const std::function<void(const std::string& path)>& change) {
  const auto bed = behind_bed();
  Error said;
  bed->run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    std::atomic<bool> has_changed = false;
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (rank.number() != 2 || !concerns_parity(operation) || has_changed.exchange(true))
        return {};
      for (const std::string& part : bed->parts("n1", 2))
        if (part.ends_with("rank.2")) change(part + "/files/ckpt.2/rank 2.0");
      return {};
    };
    rank.expect_written(2);
    rank.hook = {};
    EXPECT_TRUE(rank.session->start_output("ckpt.3", flag_checkpoint));
    const Status late = rank.session->complete_output(rank.write_files(3).has_value());
    ASSERT_FALSE(late);
    if (rank.number() == 5) said = late.error();
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::none);
  });
  EXPECT_EQ(bed->restart(four_nodes()), 3) << bed->log_text();
  return said;
}

void expect_named(const Error& said) {
  EXPECT_EQ(said.code, Code::invalid) << said.text;
  for (const char* words : {"ckpt.2", "rank 2.0", "has changed after the call that completed it"})
    EXPECT_NE(said.text.find(words), std::string::npos) << said.text;
}

TEST(SessionBehindTrouble, AFileThatIsCutFailsItsDatasetByName) {
  expect_named(change_behind([](const std::string& path) { fs::resize_file(path, 100); }));
}

TEST(SessionBehindTrouble, AFileThatIsEmptiedFailsItsDatasetByName) {
  expect_named(change_behind([](const std::string& path) { fs::resize_file(path, 0); }));
}

TEST(SessionBehindTrouble, AFileThatIsRemovedFailsItsDatasetByName) {
  expect_named(change_behind([](const std::string& path) { fs::remove(path); }));
}

// --- no room ---

/// The node of ranks 2 and 3 has no room for parity while it is `full`.
class NoRoomBehind : public ::testing::Test {
 protected:
  FileHook full_hook(const JobRank& rank) {
    return [this, number = rank.number()](const FileOperation& operation) -> Status {
      const bool takes_room = operation.name == "create" || operation.name == "rename" ||
                              operation.name == "write" || operation.name == "resize";
      if (!full_ || number / 2 != 1 || !takes_room || !concerns_parity(operation)) return {};
      return fail(Code::no_space, "injected: cannot {} {}", operation.name, operation.path);
    };
  }
  /// All ranks see the same.
  void set_full(JobRank& rank, bool full) {
    rank.comm.barrier();
    full_ = full;
    rank.comm.barrier();
  }
  /// Dataset 1 is protected. Dataset 2 is written, and there is no room for more.
  void write_into_full_store(JobRank& rank) {
    rank.expect_written(1);
    EXPECT_TRUE(rank.session->have_restart()) << "waits";
    rank.hook = full_hook(rank);
    set_full(rank, true);
    rank.expect_written(2);
  }
  static void expect_refused(JobRank& rank) {
    const Status started = rank.session->start_output("ckpt.3", flag_checkpoint);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::no_space) << started.error().text;
    EXPECT_NE(started.error().text.find("(ckpt.2) is written"), std::string::npos)
        << started.error().text;
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::written);
  }

  std::atomic<bool> full_ = false;
  std::unique_ptr<JobBed> bed_ = behind_bed();
};

TEST_F(NoRoomBehind, WhatIsWrittenStaysAndIsProtectedOnceThereIsRoom) {
  bed_->run_well(four_nodes(), [&](JobRank& rank) {
    write_into_full_store(rank);
    for (int tried = 0; tried < 2; ++tried) expect_refused(rank);
    const auto waited = rank.session->safety().wait("ckpt.2", Safety::protected_, 60);
    ASSERT_FALSE(waited);
    EXPECT_EQ(waited.error().code, Code::no_space) << waited.error().text;
    rank.comm.barrier();
    EXPECT_FALSE(bed_->parts(rank.settings.node_name, 1).empty()) << "the older one is there too";
    for (const std::string& part : bed_->parts(rank.settings.node_name, 2))
      for (const auto& entry : fs::directory_iterator(part))
        EXPECT_NE(entry.path().stem(), "parity") << "what was tried takes no room";
    set_full(rank, false);
    const Status started = rank.session->start_output("ckpt.3", flag_checkpoint);
    ASSERT_TRUE(started) << started.error().text;
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::protected_);
    EXPECT_TRUE(rank.session->complete_output(rank.write_files(3).has_value()))
        << "what has failed before is over";
  });
  EXPECT_TRUE(bed_->logs("it stays as it is")) << bed_->log_text();
  EXPECT_EQ(bed_->restart(four_nodes()), 3) << bed_->log_text();
}

/// Dataset 2 was written when the processes died. As long as it cannot be protected, nothing makes
/// the older one superfluous.
TEST_F(NoRoomBehind, WhatInitCannotProtectTakesThePlaceOfNothing) {
  bed_->write(four_nodes(), {1});
  bed_->die_exposed(four_nodes(), 2);
  full_ = true;
  bed_->run(four_nodes(), [&](JobRank& rank) {
    rank.hook = full_hook(rank);
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 2);
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::written);
    for (const std::string& part : bed_->parts(rank.settings.node_name, 2))
      for (const auto& entry : fs::directory_iterator(part))
        EXPECT_NE(entry.path().stem(), "parity") << "what was tried takes no room";
    const auto waited = rank.session->safety().wait("ckpt.2", Safety::protected_, 60);
    ASSERT_FALSE(waited);
    EXPECT_EQ(waited.error().code, Code::no_space) << waited.error().text;
    set_full(rank, false);
    rank.expect_written(3, flag_output);
    EXPECT_TRUE(rank.session->have_restart()) << "waits";
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::protected_);
  });
  EXPECT_TRUE(bed_->logs("dataset 2 (ckpt.2) is whole, but cannot be protected"))
      << bed_->log_text();
  bed_->lose("n0");
  EXPECT_EQ(bed_->restart(replaced(four_nodes(), "n0", "n4")), 1) << bed_->log_text();
}

/// The next checkpoint that is protected does.
TEST_F(NoRoomBehind, WhatInitCannotProtectGoesWithTheNextCheckpoint) {
  bed_->write(four_nodes(), {1});
  bed_->die_exposed(four_nodes(), 2);
  full_ = true;
  bed_->run(four_nodes(), [&](JobRank& rank) {
    rank.hook = full_hook(rank);
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 2);
    set_full(rank, false);
    rank.expect_written(3);
    EXPECT_TRUE(rank.session->have_restart()) << "waits";
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::none);
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::none);
  });
  EXPECT_EQ(bed_->restart(four_nodes()), 3) << bed_->log_text();
}

/// It needs no parity to be in the prefix directory.
TEST_F(NoRoomBehind, AnOutputIsCopiedWhenTheRunEnds) {
  PrefixJobBed bed;
  bed.settings.checkpoints[0].behind = true;
  bed.settings.flush_async = true;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    EXPECT_TRUE(rank.session->have_restart()) << "waits";
    rank.hook = full_hook(rank);
    set_full(rank, true);
    rank.expect_written(2, flag_checkpoint | flag_output);
    const Status ended = rank.session->finalize();
    EXPECT_TRUE(ended) << ended.error().text;
  });
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 2) << bed.log_text();
}

TEST_F(NoRoomBehind, ALookDoesNotTryAgain) {
  bed_->run_well(four_nodes(), [&](JobRank& rank) {
    write_into_full_store(rank);
    expect_refused(rank);
    rank.comm.barrier();
    set_full(rank, false);
    const auto looked = rank.session->safety().wait("ckpt.2", Safety::protected_, 0);
    ASSERT_FALSE(looked);
    EXPECT_EQ(looked.error().code, Code::no_space) << looked.error().text;
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::written);
    EXPECT_TRUE(rank.session->safety().wait("ckpt.2", Safety::protected_, 60).value_or(false));
  });
}

/// It says yes, as no work is running that the next Start would wait for; that call tries again.
TEST_F(NoRoomBehind, NeedCheckpointSaysYesAndDoesNotTryAgain) {
  set_always_due(*bed_);
  std::atomic<int> tries = 0;
  bed_->run_well(four_nodes(), [&](JobRank& rank) {
    write_into_full_store(rank);
    rank.hook = [&, full = rank.hook](const FileOperation& operation) {
      if (operation.name == "create" && concerns_parity(operation)) ++tries;
      return full(operation);
    };
    rank.comm.barrier();
    for (int asked = 0; asked < 2; ++asked) {
      EXPECT_TRUE(rank.session->schedule().need_checkpoint().value_or(false));
    }
    rank.comm.barrier();
    EXPECT_EQ(tries, 0);
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::written);
    rank.comm.barrier();
    expect_refused(rank);
    EXPECT_GT(tries, 0);
    EXPECT_TRUE(rank.session->schedule().need_checkpoint().value_or(false));
  });
}

TEST_F(NoRoomBehind, TheDeathOfProcessesTakesNothing) {
  EXPECT_FALSE(bed_->run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    write_into_full_store(rank);
    expect_refused(rank);
    rank.comm.barrier();
    throw Crash{};
  }));
  bed_->save("exposed");
  EXPECT_EQ(bed_->restart(four_nodes()), 2) << bed_->log_text();
  bed_->bring_back("exposed");
  bed_->lose("n0");
  EXPECT_EQ(bed_->restart(replaced(four_nodes(), "n0", "n4")), 1) << bed_->log_text();
}

TEST_F(NoRoomBehind, FinalizeSaysItAndTheNextRunProtectsIt) {
  bed_->run_well(four_nodes(), [&](JobRank& rank) {
    write_into_full_store(rank);
    const Status ended = rank.session->finalize();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, Code::no_space) << ended.error().text;
  });
  EXPECT_EQ(bed_->restart(four_nodes()), 2) << bed_->log_text();
  bed_->lose("n3");
  EXPECT_EQ(bed_->restart(replaced(four_nodes(), "n3", "n4")), 2) << bed_->log_text();
}

/// Then the program protects it, and there is no room for that either.
TEST_F(NoRoomBehind, WhereTheRanksHaveLostEachOtherTheNextOneIsProtectedAtOnce) {
  bed_->run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    EXPECT_TRUE(rank.session->have_restart());
    rank.hook = [&, full = full_hook(rank)](const FileOperation& operation) -> Status {
      if (rank.number() == 5 && concerns_parity(operation) && !full_) rank.break_behind();
      return full(operation);
    };
    rank.expect_written(2);
    set_full(rank, true);
    EXPECT_TRUE(rank.session->start_output("ckpt.3", flag_checkpoint));
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::written);
    EXPECT_FALSE(bed_->parts(rank.settings.node_name, 2).empty());
    rank.hook = {};
    set_full(rank, false);
    const Status late = rank.session->complete_output(rank.write_files(3).has_value());
    ASSERT_FALSE(late) << "dataset 2 was not protected";
    EXPECT_EQ(late.error().code, Code::no_space) << late.error().text;
    EXPECT_EQ(rank.session->safety().of("ckpt.3"), Safety::protected_);
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::none);
  });
  bed_->lose("n1");
  EXPECT_EQ(bed_->restart(replaced(four_nodes(), "n1", "n4")), 3) << bed_->log_text();
}

/// Dataset 3 goes to the prefix directory.
class NoRoomBehindBypassing : public NoRoomBehind {
 protected:
  NoRoomBehindBypassing() {
    bed_->settings.prefix = bed_->node("pfs");
    fs::create_directories(bed_->settings.prefix);
    CheckpointSettings bypassing = bed_->settings.checkpoints[0];
    bypassing.bypass = true;
    bypassing.interval = 3;
    bed_->settings.checkpoints.push_back(bypassing);
  }
  static Status write_bypassing(JobRank& rank) {
    EXPECT_TRUE(rank.session->start_output("ckpt.3", flag_checkpoint));
    return rank.session->complete_output(rank.write_files(3).has_value());
  }
};

TEST_F(NoRoomBehindBypassing, AStartThatFailsForAnotherReasonLeavesItToTheNextComplete) {
  bed_->run_well(four_nodes(), [&](JobRank& rank) {
    write_into_full_store(rank);
    const FileHook full = rank.hook;
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool is_in_prefix = operation.path.starts_with(rank.settings.prefix);
      return is_in_prefix ? fail(Code::io, "injected") : full(operation);
    };
    const Status started = rank.session->start_output("ckpt.3", flag_checkpoint);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::io) << started.error().text;
    rank.hook = full;
    const Status late = write_bypassing(rank);
    ASSERT_FALSE(late) << "dataset 2 is not protected";
    EXPECT_EQ(late.error().code, Code::no_space) << late.error().text;
  });
}

TEST_F(NoRoomBehindBypassing, WhatARefusedStartHasSaidTheNextCompleteDoesNotSay) {
  bed_->run_well(four_nodes(), [&](JobRank& rank) {
    write_into_full_store(rank);
    const Status started = rank.session->start_output("output", flag_output);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::no_space) << started.error().text;
    const Status written = write_bypassing(rank);
    EXPECT_TRUE(written) << written.error().text;
  });
}

TEST_F(NoRoomBehind, WhatIsDeletedMeanwhileIsNotTriedAgain) {
  bed_->run_well(four_nodes(), [&](JobRank& rank) {
    write_into_full_store(rank);
    expect_refused(rank);
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.2"));
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::none);
    set_full(rank, false);
    rank.expect_written(3);
    EXPECT_TRUE(rank.session->have_restart());
    EXPECT_EQ(rank.session->safety().of("ckpt.3"), Safety::protected_);
  });
}

// --- a rank that hangs ---

/// Every wait ends before the work does.
class HungWork final : public WorkBehind {
 public:
  HungWork(JobRank& rank, std::function<void()> at_report)
      : work_(*rank.background, *std::exchange(rank.second_comm, nullptr)),
        at_report_(std::move(at_report)) {}

  void post(std::uint64_t bytes, Task task) override { work_.post(bytes, std::move(task)); }
  bool wait(std::chrono::milliseconds /*at_most*/) override { return false; }
  void report_awaited(std::chrono::milliseconds /*waited*/) override { at_report_(); }

 private:
  WorkOfBackground work_;
  const std::function<void()> at_report_;
};

/// Rank 5 hangs while it removes dataset 1, after all has been read and sent. `call` waits for it.
/// Such a run must look hung to `cairn run --hung-after`, and not before.
void expect_silence(const std::function<void(Session&)>& call) {
  const auto bed = behind_bed();
  bed->settings.prefix = bed->node("pfs");
  fs::create_directories(bed->settings.prefix);
  bed->settings.log_json = true;
  bed->clock = std::make_unique<SkewedClock>(10'000'000);  // so that each call is logged
  std::promise<void> gate;
  const auto opened = gate.get_future().share();
  bool hangs = false;  // of rank 5, as all below
  int reports = 0;
  int calls_before = 0;
  int calls_at_first = 0;
  int calls_at_last = 0;
  bed->run(four_nodes(), [&](JobRank& rank) {
    rank.background = make_background_thread();
    rank.behind = std::make_unique<HungWork>(rank, [&, number = rank.number()] {
      if (number != 5 || !hangs) return;
      ++reports;
      if (reports == 3) calls_at_first = bed->logged_events("CALL");
      if (reports != 20) return;
      calls_at_last = bed->logged_events("CALL");
      gate.set_value();
    });
    ASSERT_TRUE(rank.init());
    rank.expect_written(1);
    ASSERT_TRUE(rank.session->have_restart()) << "waits";
    const std::string older = bed->parts("n2", 1).back() + "/files";
    ASSERT_TRUE(rank.session->start_output("ckpt.2", flag_checkpoint));
    Held held(rank);  // so that the thread is there, also for little
    ASSERT_TRUE(rank.session->complete_output(rank.write_files(2).has_value()));
    if (rank.number() == 5) {
      calls_before = bed->logged_events("CALL");
      hangs = true;
      rank.hook = [&](const FileOperation& operation) -> Status {
        if (operation.path.starts_with(older)) opened.wait_for(std::chrono::seconds(20));
        return {};
      };
    }
    rank.comm.barrier();
    held.release();
    call(*rank.session);
  });
  EXPECT_GE(reports, 20);
  EXPECT_GE(calls_at_first, calls_before + 2) << "the call, and the work as long as it goes on";
  EXPECT_EQ(calls_at_last, calls_at_first);
}

TEST(SessionBehindHang, ACallThatWaitsForWorkThatStandsStillLogsNoLife) {
  expect_silence([](Session& session) { EXPECT_TRUE(session.have_restart()); });
}

TEST(SessionBehindHang, CairnWaitForWorkThatStandsStillLogsNoLife) {
  expect_silence([](Session& session) {
    EXPECT_TRUE(session.safety().wait("ckpt.2", Safety::protected_, -1).value_or(false));
  });
}

// --- a break, and then the death of a process ---

/// Else a program that begins a checkpoint only after a yes would make no more.
TEST(SessionBehindBreak, NeedCheckpointSaysYesAndTheNextStartProtects) {
  const auto bed = behind_bed();
  set_always_due(*bed);
  bed->run_well(four_nodes(), [&](JobRank& rank) {
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (rank.number() == 5 && concerns_parity(operation)) rank.break_behind();
      return {};
    };
    rank.expect_written(1);
    rank.hook = {};
    EXPECT_TRUE(rank.session->schedule().need_checkpoint().value_or(false));
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::written);
    EXPECT_TRUE(rank.session->start_output("ckpt.2", flag_checkpoint));
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::protected_);
    EXPECT_TRUE(rank.session->complete_output(rank.write_files(2).has_value()));
  });
  EXPECT_TRUE(bed->logs("cannot reach each other")) << bed->log_text();
}

/// Dataset 1 is protected. Where rank 5 comes to an operation of dataset 2, the ranks lose each
/// other behind the program. So the program protects it in its next call, in which `victim` crashes
/// after `count` operations; then `node` is lost, if any. False when there were no more operations.
bool survives_crash_after_break(JobBed& bed,
                                const std::function<bool(const FileOperation&)>& breaks, int victim,
                                int count, const std::string& node) {
  bed.bring_back("one");
  std::atomic<bool> is_protected = false;
  const bool ended = bed.run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 1);
    std::atomic<int> commits = 0;
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (operation.name == "rename" && operation.to.ends_with("/record")) ++commits;
      // From its second record on it is not the written one.
      const bool is_behind = commits > 1 || concerns_parity(operation);
      if (rank.number() == 5 && is_behind && breaks(operation)) rank.break_behind();
      return {};
    };
    rank.expect_written(2);
    rank.hook = {};
    rank.comm.barrier();
    if (rank.number() == victim) rank.hook = crash_after(count);
    if (rank.session->have_restart() && rank.session->safety().of("ckpt.2") == Safety::protected_)
      is_protected = true;
    rank.hook = {};
  });
  Nodes nodes = four_nodes();
  if (!node.empty()) {
    bed.lose(node);
    nodes = replaced(nodes, node, "n4");
  }
  const int from = bed.restart(nodes, [](JobRank& rank) {
    rank.expect_written(3);
    EXPECT_TRUE(rank.session->have_restart()) << "waits until 3 is protected";
  });
  const bool may_be_older = !node.empty() && !is_protected;
  EXPECT_TRUE(from == 2 || (from == 1 && may_be_older))
      << "restarted from " << from << ": " << bed.log_text();
  EXPECT_EQ(bed.restart(nodes), 3) << bed.log_text();
  return !ended;
}

void crash_everywhere_after_break(const std::function<bool(const FileOperation&)>& breaks,
                                  int fewest) {
  const auto bed = behind_bed();
  bed->write(four_nodes(), {1});
  bed->save("one");
  for (const bool with_node : {false, true})
    for (const int victim : {5, 0}) {
      const std::string node = with_node ? fmt::format("n{}", victim / 2) : "";
      int count = 0;
      while (survives_crash_after_break(*bed, breaks, victim, count, node)) {
        ASSERT_FALSE(testing::Test::HasFailure()) << "rank " << victim << " after " << count;
        count += sanitized ? 7 : steps_between_deaths();
      }
      ASSERT_FALSE(testing::Test::HasFailure()) << "rank " << victim << " after " << count;
      EXPECT_GE(count, fewest) << "rank " << victim;
    }
}

/// No rank has committed: the program begins anew.
TEST(SessionBehindBreak, WhileParityIsMadeACrashTakesNothing) {
  crash_everywhere_after_break([](const FileOperation&) { return true; }, 10);
}

/// Rank 5 commits; of the others some have, and some have only prepared.
TEST(SessionBehindBreak, WhileRanksCommitACrashTakesNothing) {
  crash_everywhere_after_break(
      [](const FileOperation& operation) {
        return operation.name == "rename" && operation.to.ends_with("/record");
      },
      0);
}

// --- records that do not get their names ---

bool commits(const FileOperation& operation) {
  return operation.name == "rename" && operation.to.ends_with("/record");
}

/// The program protects what the ranks could not behind it, and rank 5 cannot give its record its
/// name at once, where all others have.
TEST(SessionBehindBreak, WhatARankHasCommittedInTheSecondTryIsCommittedByAll) {
  const auto bed = behind_bed();
  bed->write(four_nodes(), {1});
  bed->run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 1);
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (rank.number() == 5 && concerns_parity(operation)) rank.break_behind();
      return {};
    };
    rank.expect_written(2);
    bool fails = rank.number() == 5;
    rank.hook = [&](const FileOperation& operation) -> Status {
      return commits(operation) && std::exchange(fails, false) ? fail(Code::io, "injected")
                                                               : Status{};
    };
    EXPECT_TRUE(rank.session->have_restart());
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::protected_);
  });
  bed->lose("n1");
  EXPECT_EQ(bed->restart(replaced(four_nodes(), "n1", "n4")), 2) << bed->log_text();
}

/// The ranks of n1 cannot, so only those of n0 prove that all have prepared: with n0 that would go.
TEST(SessionBehindTrouble, WhatOnlyOneNodeHasCommittedIsNotProtected) {
  const Nodes two = {"n0", "n0", "n1", "n1"};
  for (const bool ends_well : {false, true}) {
    const auto bed = behind_bed();
    bed->settings.checkpoints[0].set_size = 2;
    bed->write(two, {1});
    bed->run(two, [&](JobRank& rank) {
      ASSERT_TRUE(rank.init());
      EXPECT_EQ(rank.restart(), 1);
      std::atomic<int> commits_here = 0;
      rank.hook = [&](const FileOperation& operation) -> Status {
        const bool is_late = commits(operation) && rank.number() >= 2 && ++commits_here > 1;
        return is_late ? fail(Code::io, "injected") : Status{};
      };
      rank.expect_written(2);
      if (ends_well) {
        const Status ended = rank.session->finalize();
        ASSERT_FALSE(ended);
        EXPECT_NE(ended.error().text.find("ckpt.2"), std::string::npos) << ended.error().text;
        return;
      }
      EXPECT_TRUE(rank.session->have_restart());
      EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::none);
      EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::protected_);
    });
    bed->lose("n0");
    EXPECT_EQ(bed->restart(replaced(two, "n0", "n4")), 1) << bed->log_text();
  }
}

/// All records have their names, and one is not durable at once. There is no room for another try.
TEST(SessionBehindTrouble, ARecordThatIsNotDurableAtOnceIsNotPreparedAnew) {
  const auto bed = behind_bed("/tmp");
  bed->write(four_nodes(), {1});
  bed->run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 1);
    int commits_here = 0;  // the first is that of what is written
    bool has_failed = false;
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (has_failed && operation.name == "create" && concerns_parity(operation))
        return fail(Code::no_space, "injected");
      const bool is_of_commit = commits_here == 2 && operation.name == "sync_folder";
      if (commits(operation) && rank.number() == 5) ++commits_here;
      if (is_of_commit && !std::exchange(has_failed, true)) return fail(Code::io, "injected");
      return {};
    };
    (void)rank.write(2);
    EXPECT_TRUE(rank.session->have_restart());
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::protected_);
  });
  bed->lose("n1");
  EXPECT_EQ(bed->restart(replaced(four_nodes(), "n1", "n4")), 2) << bed->log_text();
}

}  // namespace
}  // namespace cairn
