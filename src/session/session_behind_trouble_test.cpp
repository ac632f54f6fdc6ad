// What becomes of a dataset that was written, and cannot be protected behind the program.
#include <atomic>

#include "support/behind_bed.hpp"
#include "support/every_death.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

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

/// The ranks lose each other as the older dataset is being removed, and then the disk of rank 5
/// does not sync.
TEST(SessionBehindBreak, WhatAllHaveCommittedIsNotRemovedForALaterError) {
  const auto bed = behind_bed("/tmp");
  bed->write(four_nodes(), {1});
  bed->run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 1);
    std::atomic<bool> is_broken = false;
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (rank.number() != 5) return {};
      const bool removes_older = operation.name.find("remove") != std::string::npos &&
                                 operation.path.find("/dataset.1.") != std::string::npos;
      if (removes_older && !is_broken.exchange(true)) rank.break_behind();
      const bool syncs = operation.name == "sync_folder" &&
                         operation.path.find("/dataset.2.") != std::string::npos;
      return is_broken && syncs ? fail(Code::io, "injected") : Status{};
    };
    rank.expect_written(2);
    EXPECT_TRUE(rank.session->safety().wait("ckpt.2", Safety::protected_, 60).value_or(false));
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::none) << "its removal has begun";
  });
  EXPECT_EQ(bed->restart(four_nodes()), 2) << bed->log_text();
}

TEST(SessionBehindTrouble, WhatIsRemovedIsNotCalledWritten) {
  const auto bed = behind_bed();
  bed->write(four_nodes(), {1});
  bed->run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 1);
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool fails = rank.number() == 5 && operation.name == "create" &&
                         concerns_parity(operation) &&
                         operation.path.find("/dataset.2.") != std::string::npos;
      return fails ? fail(Code::io, "injected") : Status{};
    };
    rank.expect_written(2);
    const Status completed = rank.write(3);
    ASSERT_FALSE(completed);
    EXPECT_NE(
        completed.error().text.find("dataset 2 (ckpt.2) could not be protected, and is removed"),
        std::string::npos)
        << completed.error().text;
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::none);
  });
}

/// From the first parity on, nothing of the dataset can be read on one node.
TEST(SessionBehindTrouble, AStoreThatFailsAtTheEndOfTheRunIsAnError) {
  PrefixJobBed bed;
  bed.settings.checkpoints[0].behind = true;
  bed.settings.flush_async = true;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    EXPECT_TRUE(rank.session->have_restart()) << "waits";
    std::atomic<bool> fails = false;
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool is_of_cache = operation.path.find("/dataset.2.") != std::string::npos &&
                               !operation.path.starts_with(bed.settings.prefix);
      if (rank.number() / 2 != 1 || !is_of_cache) return {};
      if (concerns_parity(operation)) fails = true;
      return fails ? fail(Code::io, "injected") : Status{};
    };
    rank.expect_written(2, flag_checkpoint | flag_output);
    const Status ended = rank.session->finalize();
    ASSERT_FALSE(ended);
    EXPECT_NE(ended.error().text.find("ckpt.2"), std::string::npos) << ended.error().text;
  });
  EXPECT_TRUE(bed.logs("cannot be copied either")) << bed.log_text();
}

}  // namespace
}  // namespace cairn
