// What is written has no room to be protected.
#include <atomic>
#include <filesystem>

#include "support/behind_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

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
  /// Dataset 1 is protected. Dataset 2 was written when the processes died, and Init has no room to
  /// protect it.
  void run_after_exposure(const JobBed::RankMain& rank_main) {
    bed_->write(four_nodes(), {1});
    bed_->die_exposed(four_nodes(), 2);
    full_ = true;
    bed_->run(four_nodes(), [&](JobRank& rank) {
      rank.hook = full_hook(rank);
      ASSERT_TRUE(rank.init());
      EXPECT_EQ(rank.restart(), 2);
      rank_main(rank);
    });
  }
  void expect_no_parity(const JobRank& rank) const {
    for (const std::string& part : bed_->parts(rank.settings.node_name, 2))
      for (const auto& entry : fs::directory_iterator(part))
        EXPECT_NE(entry.path().stem(), "parity") << "what was tried takes no room";
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
    expect_no_parity(rank);
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

/// As long as it cannot be protected, nothing makes the older one superfluous.
TEST_F(NoRoomBehind, WhatInitCannotProtectTakesThePlaceOfNothing) {
  run_after_exposure([&](JobRank& rank) {
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::written);
    expect_no_parity(rank);
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
  run_after_exposure([&](JobRank& rank) {
    set_full(rank, false);
    rank.expect_written(3);
    EXPECT_TRUE(rank.session->have_restart()) << "waits";
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::none);
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::none);
  });
  EXPECT_EQ(bed_->restart(four_nodes()), 3) << bed_->log_text();
}

/// It is whole, and newer than what is kept beside it.
TEST_F(NoRoomBehind, WhatInitCannotProtectGoesInItsTurn) {
  bed_->settings.stores[0].count = 2;
  run_after_exposure([&](JobRank& rank) {
    set_full(rank, false);
    const auto expect_safeties = [&](std::vector<Safety> expected) {
      EXPECT_TRUE(rank.session->have_restart()) << "waits";
      for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(rank.session->safety().of(fmt::format("ckpt.{}", i + 1)), expected[i]) << i + 1;
    };
    rank.expect_written(3);
    expect_safeties({Safety::protected_, Safety::written, Safety::protected_});
    rank.expect_written(4);
    expect_safeties({Safety::none, Safety::none, Safety::protected_, Safety::protected_});
  });
}

/// An older one stays beside what Init has protected, as the program may reject that.
TEST_F(NoRoomBehind, WhatInitHasProtectedTakesThePlaceOfTheOlderOneAtTheNextStart) {
  bed_->write(four_nodes(), {1});
  bed_->die_exposed(four_nodes(), 2);
  bed_->run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 2);
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::protected_);
    ASSERT_TRUE(rank.session->start_output("ckpt.3", flag_checkpoint));
    rank.comm.barrier();
    EXPECT_TRUE(bed_->parts(rank.settings.node_name, 1).empty()) << "three of them have no room";
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::none);
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::protected_);
  });
  bed_->lose("n0");
  EXPECT_EQ(bed_->restart(replaced(four_nodes(), "n0", "n4")), 2) << bed_->log_text();
}

TEST_F(NoRoomBehind, WhereTheProgramRejectsWhatInitHasProtectedItGetsTheOlderOne) {
  bed_->write(four_nodes(), {1});
  bed_->die_exposed(four_nodes(), 2);
  bed_->run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    ASSERT_EQ(rank.session->start_restart().value_or(""), "ckpt.2");
    EXPECT_FALSE(rank.session->complete_restart(false));
    EXPECT_EQ(rank.restart(), 1);
    rank.expect_written(3);
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

/// It may be whole for a later run, on the nodes that it waits for.
TEST_F(NoRoomBehind, WhatInitCannotProtectTakesThePlaceOfNothingThatWaitsForNodes) {
  const Nodes others = replaced(replaced(four_nodes(), "n0", "n4"), "n3", "n5");
  bed_->write(four_nodes(), {1});
  bed_->die_exposed(others, 2);
  full_ = true;
  bed_->run(others, [&](JobRank& rank) {
    rank.hook = full_hook(rank);
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 2);
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::written);
    EXPECT_TRUE(rank.session->start_output("ckpt.3", flag_checkpoint)) << "removes older ones";
  });
  EXPECT_EQ(bed_->restart(four_nodes()), 1) << bed_->log_text();
}

}  // namespace
}  // namespace cairn
