// Checkpoints that are protected while the program goes on.
#include <atomic>
#include <chrono>
#include <thread>

#include "support/behind_bed.hpp"

namespace cairn {
namespace {

TEST(SessionBehind, ADatasetIsWrittenFirstAndThenProtected) {
  const auto bed = behind_bed();
  bed->run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    EXPECT_TRUE(rank.session->have_restart()) << "waits";
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::protected_);
  });
  EXPECT_TRUE(bed->logs("is protected,")) << bed->log_text();
  bed->lose("n1");
  EXPECT_EQ(bed->restart(replaced(four_nodes(), "n1", "n4")), 1) << bed->log_text();
}

TEST(SessionBehind, TheStateIsExactAtEachMoment) {
  const auto bed = behind_bed();
  bed->run(four_nodes(), [&](JobRank& rank) {
    rank.background = make_background_thread();
    ASSERT_TRUE(rank.init());
    ASSERT_TRUE(rank.session->start_output("ckpt.1", flag_checkpoint));
    Held held(rank);
    ASSERT_TRUE(rank.session->complete_output(rank.write_files(1).has_value()));
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::written);
    const auto waited = rank.session->safety().wait("ckpt.1", Safety::protected_, 0.01);
    ASSERT_TRUE(waited) << waited.error().text;
    EXPECT_FALSE(*waited);
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::written);
    rank.comm.barrier();
    held.release();
    EXPECT_TRUE(rank.session->safety().wait("ckpt.1", Safety::protected_, 60).value_or(false));
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::protected_);
  });
}

/// The job dies while dataset 2 is written and not protected; the processes alone, or a node too.
class SessionBehindExposed : public testing::Test {
 protected:
  void die_exposed() {
    bed_->write(four_nodes(), {1});
    bed_->die_exposed(four_nodes(), 2);
  }

  std::unique_ptr<JobBed> bed_ = behind_bed();
};

TEST_F(SessionBehindExposed, TheDeathOfProcessesLosesNothing) {
  die_exposed();
  EXPECT_EQ(bed_->restart(four_nodes()), 2) << bed_->log_text();
  bed_->lose("n2");
  EXPECT_EQ(bed_->restart(four_nodes()), 2) << "Init has protected it: " << bed_->log_text();
}

TEST_F(SessionBehindExposed, PartsMoveToWhereRanksRunNow) {
  die_exposed();
  const Nodes turned = {"n3", "n3", "n0", "n0", "n1", "n1", "n2", "n2"};
  EXPECT_EQ(bed_->restart(turned), 2) << bed_->log_text();
  bed_->lose("n0");
  EXPECT_EQ(bed_->restart(replaced(turned, "n0", "n5")), 2) << bed_->log_text();
}

TEST_F(SessionBehindExposed, ALostNodeBringsBackTheOlderOne) {
  die_exposed();
  const std::string away = bed_->node("n1") + ".away";
  std::filesystem::rename(bed_->node("n1"), away);
  const Nodes spare = replaced(four_nodes(), "n1", "n4");
  EXPECT_EQ(bed_->restart(spare), 1) << bed_->log_text();
  EXPECT_TRUE(bed_->logs("was written at")) << bed_->log_text();
  std::filesystem::rename(away, bed_->node("n1"));
  EXPECT_EQ(bed_->restart(four_nodes()), 2) << "the node is back: " << bed_->log_text();
}

TEST_F(SessionBehindExposed, AChangedFileIsNotTakenForWhatWasWritten) {
  die_exposed();
  for (const std::string& part : bed_->parts("n2", 2))
    for (const auto& entry : std::filesystem::recursive_directory_iterator(part + "/files"))
      if (entry.is_regular_file() && entry.file_size() > 0)
        std::filesystem::resize_file(entry.path(), entry.file_size() - 1);
  EXPECT_EQ(bed_->restart(four_nodes()), 1) << bed_->log_text();
}

/// Dataset 1 is protected. Dataset 2 is written and being protected, or protected, when `victim`
/// crashes after `count` operations; then `node` is lost, if any. False when there were no more
/// operations.
bool survives_crash_behind(JobBed& bed, int victim, int count, const std::string& node) {
  bed.bring_back("one");
  std::atomic<bool> is_written = false;
  std::atomic<bool> is_protected = false;
  const bool ended = bed.run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 1);
    if (rank.number() == victim) rank.hook = crash_after(count);
    if (rank.write(2)) is_written = true;
    if (rank.session->safety().of("ckpt.2") == Safety::protected_) is_protected = true;
    if (rank.session->have_restart()) is_protected = true;
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
  const bool may_be_older = node.empty() ? !is_written : !is_protected;
  EXPECT_TRUE(from == 2 || (from == 1 && may_be_older))
      << "restarted from " << from << ": " << bed.log_text();
  EXPECT_EQ(bed.restart(nodes), 3) << bed.log_text();
  for (const std::string& each : nodes)
    EXPECT_TRUE(bed.parts(each) == bed.parts(each, 2) || bed.parts(each) == bed.parts(each, 3))
        << "remains on " << each;
  return !ended;
}

void crash_everywhere_behind(JobBed& bed, int stride, bool with_node) {
  bed.write(four_nodes(), {1});
  bed.save("one");
  for (const int victim : {3, 0}) {
    const std::string node = with_node ? fmt::format("n{}", victim / 2) : "";
    int count = 0;
    while (survives_crash_behind(bed, victim, count, node)) {
      ASSERT_FALSE(testing::Test::HasFailure()) << "rank " << victim << " after " << count;
      count += sanitized ? 5 * stride : stride;
    }
    EXPECT_GT(count, 20) << "it is more than a few operations";
    ASSERT_FALSE(testing::Test::HasFailure()) << "rank " << victim << " after " << count;
  }
}

TEST(SessionBehindCrash, AtAnyOperation) { crash_everywhere_behind(*behind_bed(), 2, false); }

TEST(SessionBehindCrash, AtAnyOperationAndTheNodeIsLost) {
  crash_everywhere_behind(*behind_bed(), 3, true);
}

TEST(SessionBehindCrash, OnADisk) { crash_everywhere_behind(*behind_bed("/tmp"), 11, true); }

/// A run that finds a dataset that was only written crashes while it protects that.
void crash_in_init(JobBed& bed, const Nodes& nodes) {
  for (const int victim : {2, 0}) {
    bool ended = false;
    for (int count = 0; !ended; count += sanitized ? 17 : 5) {
      bed.bring_back("exposed");
      ended = bed.run(nodes, [&](JobRank& rank) {
        if (rank.number() == victim) rank.hook = crash_after(count);
        EXPECT_TRUE(rank.init());
        rank.hook = {};
      });
      ASSERT_EQ(bed.restart(nodes, [](JobRank& rank) { rank.expect_written(3); }), 2)
          << "rank " << victim << " after " << count << ": " << bed.log_text();
    }
  }
}

TEST_F(SessionBehindExposed, ACrashWhileInitProtectsItLosesNothing) {
  die_exposed();
  bed_->save("exposed");
  crash_in_init(*bed_, four_nodes());
  crash_in_init(*bed_, {"n3", "n3", "n0", "n0", "n1", "n1", "n2", "n2"});
}

/// The ranks lose each other behind the program, and go on by its own communicator.
TEST(SessionBehind, WhereRanksCannotReachEachOtherTheProgramProtectsTheDataset) {
  const auto bed = behind_bed();
  bed->run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    ASSERT_TRUE(rank.session->have_restart());
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool begins = operation.path.find("/parity.") != std::string::npos;
      if (rank.number() == 5 && begins) rank.break_behind();
      return {};
    };
    rank.expect_written(2);
    rank.hook = {};
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::written);
    rank.expect_written(3);
    EXPECT_EQ(rank.session->safety().of("ckpt.3"), Safety::protected_) << "at once from here on";
  });
  EXPECT_TRUE(bed->logs("the call that completes them returns: another rank of the team"))
      << "says why: " << bed->log_text();
  bed->lose("n1");
  EXPECT_EQ(bed->restart(replaced(four_nodes(), "n1", "n4")), 3) << bed->log_text();
}

TEST(SessionBehind, WhereRanksCouldNotBeConnectedTheLogSaysWhich) {
  const auto bed = behind_bed();
  bed->run(four_nodes(), [&](JobRank& rank) {
    rank.second_comm = nullptr;
    const std::string why = "rank 4 (process 7 on n2) cannot reach rank 6 (process 9 on n3)";
    if (rank.number() >= 4)
      rank.behind = std::make_unique<NoWorkBehind>(Error{Code::disabled, why, -1});
    else
      rank.behind = std::make_unique<WorkOfBackground>(*rank.background, rank.comm);
    ASSERT_TRUE(rank.init());
    rank.expect_written(1);
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::protected_);
  });
  EXPECT_TRUE(bed->logs("PROTECT=now: rank 4 (process 7 on n2) cannot reach rank 6"))
      << bed->log_text();
}

/// As at exit(): what is left of large files would take long.
TEST(SessionBehind, AJobThatIsToStopReadsNoMoreFiles) {
  const auto bed = behind_bed();
  bed->run_well(four_nodes(), [&](JobRank& rank) {
    rank.stop_behind.request_stop();
    std::atomic<int> reads = 0;
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (operation.name == "read" && operation.path.find("/files/") != std::string::npos) ++reads;
      return {};
    };
    rank.expect_written(1);
    rank.hook = {};
    EXPECT_EQ(reads, 0);
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::written);
    EXPECT_TRUE(rank.session->have_restart());
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::protected_);
  });
}

TEST(SessionBehind, AFileThatChangesBeforeItIsProtectedFailsItsDatasetByName) {
  const auto bed = behind_bed();
  bed->run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    rank.background->wait();
    std::atomic<bool> has_changed = false;
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool begins = operation.path.find("/parity.") != std::string::npos;
      if (rank.number() != 2 || !begins || has_changed.exchange(true)) return {};
      for (const std::string& part : bed->parts("n1", 2))
        if (part.ends_with("rank.2"))
          for (const auto& entry : std::filesystem::recursive_directory_iterator(part + "/files"))
            if (entry.is_regular_file()) std::ofstream(entry.path(), std::ios::app) << "more";
      return {};
    };
    rank.expect_written(2);
    rank.hook = {};
    EXPECT_TRUE(rank.session->start_output("ckpt.3", flag_checkpoint));
    const Status late = rank.session->complete_output(rank.write_files(3).has_value());
    ASSERT_FALSE(late);
    EXPECT_NE(late.error().text.find("ckpt.2"), std::string::npos) << late.error().text;
    EXPECT_NE(late.error().text.find("rank 2.0"), std::string::npos) << late.error().text;
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::none);
    EXPECT_TRUE(rank.session->have_restart());
    EXPECT_EQ(rank.session->safety().of("ckpt.3"), Safety::protected_);
  });
}

TEST(SessionBehind, TheOlderOneGoesBehindTheProgramOnceTheNewerOneIsProtected) {
  const auto bed = behind_bed();
  bed->run(four_nodes(), [&](JobRank& rank) {
    rank.background = make_background_thread();
    ASSERT_TRUE(rank.init());
    rank.expect_written(1);
    ASSERT_TRUE(rank.session->have_restart());
    ASSERT_TRUE(rank.session->start_output("ckpt.2", flag_checkpoint));
    Held held(rank);
    ASSERT_TRUE(rank.session->complete_output(rank.write_files(2).has_value()));
    EXPECT_EQ(bed->parts(rank.settings.node_name, 1).size(), 2U);
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::protected_);
    rank.comm.barrier();
    held.release();
    rank.background->wait();
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::protected_);
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::none);
    rank.comm.barrier();
    EXPECT_TRUE(bed->parts(rank.settings.node_name, 1).empty()) << "without a call";
    const auto waited = rank.session->safety().wait("ckpt.1", Safety::flushed, 60);
    EXPECT_FALSE(waited) << "it is gone";
  });
  EXPECT_EQ(bed->restart(four_nodes()), 2) << bed->log_text();
}

/// A rank whose files went first would have a record of a dataset that is not whole.
TEST(SessionBehind, FilesOfAnOlderOneStayUntilAllRanksHaveRemovedItsRecords) {
  const auto bed = behind_bed();
  std::atomic<std::size_t> ranks_without_record = 0;
  std::atomic<int> files_removed = 0;
  bed->run_well(four_nodes(), [&](JobRank& rank) {
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool is_of_older = operation.path.find("/dataset.1.") != std::string_view::npos;
      if (!is_of_older || operation.name != "remove_file") return {};
      if (operation.path.ends_with("/record")) {
        if (rank.number() == 5) std::this_thread::sleep_for(std::chrono::milliseconds(200));
        ++ranks_without_record;
      } else if (operation.path.find("/files/") != std::string_view::npos) {
        ++files_removed;
        EXPECT_EQ(ranks_without_record, four_nodes().size()) << operation.path;
      }
      return {};
    };
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_GT(files_removed, 0);
}

TEST(SessionBehind, FinalizeProtectsTheLastOne) {
  const auto bed = behind_bed();
  bed->run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    EXPECT_TRUE(rank.session->finalize());
  });
  bed->lose("n3");
  EXPECT_EQ(bed->restart(replaced(four_nodes(), "n3", "n4")), 1) << bed->log_text();
}

}  // namespace
}  // namespace cairn
