// Datasets on their way to the prefix directory and back, as a job sees it.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "support/every_death.hpp"
#include "support/job_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

TEST(SessionPrefix, EveryNthCheckpointIsThereAndTheNewestAfterFinalize) {
  PrefixJobBed bed;
  bed.write(four_nodes(), {1, 2, 3});
  EXPECT_EQ(bed.listed(), Names({"ckpt.2"}));
  bed.expect_own_files(2);
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 3);
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.3", "ckpt.2"}));
  bed.expect_own_files(3);
}

TEST(SessionPrefix, NothingButTheIdIsMadeThereBeforeThereIsSomethingToKeep) {
  PrefixJobBed bed;
  bed.write(four_nodes(), {1});
  const auto has_only_id = [&] {
    for (const auto& entry : fs::directory_iterator(bed.settings.prefix + "/.cairn"))
      if (entry.path().filename() != "id") return false;
    return true;
  };
  EXPECT_TRUE(has_only_id());
  bed.settings.flush_interval = 0;
  bed.write_and_finalize({2});
  EXPECT_TRUE(has_only_id());
}

TEST(SessionPrefix, WhatIsThereOutlivesAllNodesAndIsProtectedAgain) {
  PrefixJobBed bed;
  bed.write_and_finalize({1, 2, 3});
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 3);
  EXPECT_TRUE(bed.logs("was fetched from")) << bed.log_text();
  bed.settings.fetch = false;
  bed.lose("n2");
  EXPECT_EQ(bed.restart(four_nodes()), 3) << "from the cache";
}

/// What was left alone lies where a copy would.
TEST(SessionPrefix, WithDistributeOffWhatTheCachesHaveIsReadInThePrefixDirectory) {
  const Nodes turned = {"n3", "n3", "n0", "n0", "n1", "n1", "n2", "n2"};
  for (const Nodes& nodes : {four_nodes(), turned}) {
    PrefixJobBed bed;
    bed.write_and_finalize({1, 2});
    bed.settings.distribute = false;
    EXPECT_EQ(bed.restart(nodes), 2) << bed.log_text();
    EXPECT_TRUE(bed.logs("is read directly")) << bed.log_text();
    bed.settings.distribute = true;
    bed.settings.fetch = false;
    bed.lose("n2");
    EXPECT_EQ(bed.restart(nodes), 2) << bed.log_text();
    EXPECT_EQ(bed.restart(four_nodes()), 2) << bed.log_text();
  }
}

TEST(SessionPrefix, NumbersGoOnWhereThePrefixDirectoryEnds) {
  PrefixJobBed bed;
  bed.write_and_finalize({1, 2, 3});
  bed.lose_all_nodes();
  bed.settings.fetch = false;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    EXPECT_TRUE(rank.write_files(4));
    EXPECT_TRUE(rank.session->complete_checkpoint(true));
  });
  EXPECT_EQ(bed.listed()[0], "scr.dataset.4");
}

TEST(SessionPrefix, ADamagedOneIsPassedOverAndTheReasonReported) {
  PrefixJobBed bed;
  bed.write_and_finalize({1, 2, 3, 4});
  bed.lose_all_nodes();
  flip_bit(bed.file(4, 5));
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  EXPECT_TRUE(bed.logs("rank 5.0")) << bed.log_text();
  EXPECT_TRUE(bed.logs("does not match its checksum")) << bed.log_text();
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  EXPECT_FALSE(bed.logs("cannot be used")) << "it is known to have failed";
}

/// Two nodes are too many for the set; but they may come back.
TEST(SessionPrefix, WhatTheCachesHaveLeftStaysUntilTheCopyIsKnownToBeGood) {
  for (const bool good : {false, true}) {
    PrefixJobBed bed;
    bed.write(four_nodes(), {1, 2});
    bed.save("before");
    for (const std::string node : {"n1", "n2"}) bed.lose(node);
    if (!good) flip_bit(bed.file(2, 6));
    EXPECT_EQ(bed.restart(four_nodes()), good ? 2 : 0) << bed.log_text();
    EXPECT_EQ(bed.parts("n3", 2).size(), 2U);
    if (good) {
      bed.lose("n2");
      EXPECT_EQ(bed.restart(four_nodes()), 2) << "protected again";
      continue;
    }
    for (const std::string node : {"n1", "n2"})
      fs::copy(bed.saved("before", node), bed.node(node),
               fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    EXPECT_EQ(bed.restart(four_nodes()), 2) << bed.log_text();
  }
}

TEST(SessionPrefix, WithoutRoomForBothTheRestartGoesBeforeWhatIsLeft) {
  PrefixJobBed bed;
  bed.write(four_nodes(), {1, 2});
  for (const std::string node : {"n1", "n2"}) bed.lose(node);
  EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool fetches = operation.path.find("/fetch.7/files/") != std::string_view::npos;
      if (operation.name != "create" || !fetches || bed.parts("n3", 2).empty()) return {};
      return fail(Code::no_space, "injected: cannot make {}", operation.path);
    };
    EXPECT_EQ(rank.restart(), 2);
  }));
}

TEST(SessionPrefix, AFetchThatDiedLeavesNothing) {
  PrefixJobBed bed;
  bed.write(four_nodes(), {1, 2});
  bed.lose_all_nodes();
  EXPECT_FALSE(bed.run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (operation.name == "rename" && operation.path.ends_with("/fetch.3")) throw Crash{};
      return {};
    };
    (void)rank.restart();
  }));
  const std::string left = bed.job_folder("n1") + "/fetch.3";
  EXPECT_TRUE(fs::exists(left));
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  EXPECT_FALSE(fs::exists(left));
}

TEST(SessionPrefix, StopAndFreshDoAsTheySay) {
  for (const auto& [answer, gone] : {std::pair{OnFetchFail::stop, false},
                                     {OnFetchFail::stop, true},
                                     {OnFetchFail::fresh, false}}) {
    PrefixJobBed bed;
    bed.write_and_finalize({1, 2, 3, 4});
    bed.lose_all_nodes();
    if (gone)
      fs::remove(bed.file(4, 0));
    else
      flip_bit(bed.file(4, 0));
    bed.settings.on_fetch_fail = answer;
    bed.run_well(four_nodes(), [&](JobRank& rank) {
      const auto found = rank.session->have_restart();
      if (answer == OnFetchFail::stop) {
        ASSERT_FALSE(found);
        EXPECT_EQ(found.error().code, gone ? Code::lost : Code::corrupt);
        EXPECT_NE(found.error().text.find("cairn verify --repair ckpt.4"), std::string::npos)
            << found.error().text;
      } else {
        ASSERT_TRUE(found);
        EXPECT_FALSE(found->has_value());
      }
    });
    EXPECT_EQ(bed.logs("STARTS FROM SCRATCH"), answer == OnFetchFail::fresh) << bed.log_text();
    EXPECT_EQ(bed.logs("no older one is tried"), answer == OnFetchFail::fresh) << bed.log_text();
  }
}

TEST(SessionPrefix, WhatIsBadOrGoneInTheCacheIsRepairedBeforeItIsCopied) {
  for (const bool gone : {false, true}) {
    PrefixJobBed bed;
    bed.write(four_nodes(), {1});
    bed.run_well(four_nodes(), [&](JobRank& rank) {
      EXPECT_EQ(rank.restart(), 1);
      rank.comm.barrier();
      const std::string file = bed.parts("n2", 1)[0] + "/files/ckpt.1/rank 4.0";
      if (rank.number() == 4 && gone) fs::remove(file);
      if (rank.number() == 4 && !gone) flip_bit(file);
      rank.comm.barrier();
      EXPECT_TRUE(rank.session->finalize());
    });
    EXPECT_EQ(bed.listed(), Names({"ckpt.1"})) << gone;
    bed.expect_own_files(1);
  }
}

TEST(SessionPrefix, WhatIsFoundDamagedBeyondRepairIsNotCalledSafe) {
  PrefixJobBed bed;
  bed.settings.checkpoints[0].scheme = Scheme::single;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    rank.comm.barrier();
    if (rank.number() == 4) flip_bit(bed.parts("n2", 1)[0] + "/files/ckpt.1/rank 4.0");
    rank.comm.barrier();
    const Status ended = rank.session->finalize();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, Code::lost) << ended.error().text;
  });
  EXPECT_EQ(bed.listed(), Names());
}

TEST(SessionPrefix, OutputsLeaveTheCacheOnceTheyAreThere) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 0;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1, flag_output);
    rank.expect_written(2, flag_output | flag_checkpoint);
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.2", "ckpt.1"}));
  EXPECT_TRUE(bed.parts("n0", 1).empty());
  EXPECT_EQ(bed.parts("n0", 2).size(), 2U);
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

TEST(SessionPrefix, AnOutputThatCannotBeCopiedStaysAndIsTriedAgain) {
  PrefixJobBed bed;
  const std::string prefix = bed.settings.prefix;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.hook = [prefix](const FileOperation& operation) -> Status {
      if (!operation.path.starts_with(prefix)) return {};
      return fail(Code::no_space, "injected: {} is full", operation.path);
    };
    rank.expect_not_copied(1, flag_output);
    EXPECT_EQ(bed.parts("n0", 1).size(), 2U);
    rank.expect_written(2);  // a checkpoint that is not due
    rank.comm.barrier();
    rank.hook = nullptr;
    rank.expect_written(3);
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.3", "ckpt.1"})) << "2 was due, 3 goes in its place";
  bed.expect_own_files(1);
}

TEST(SessionPrefix, ARankForWhichItIsSlowIsWaitedFor) {
  PrefixJobBed bed;
  std::atomic<int> slow_calls = 0;
  const auto slow = [&](JobRank& rank) {
    if (rank.number() != 5) return;
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (!operation.path.starts_with(bed.settings.prefix)) return {};
      ++slow_calls;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return {};
    };
  };
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    slow(rank);
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    EXPECT_EQ(bed.listed(), Names({"ckpt.2"})) << "on all ranks it is there when the call ends";
  });
  EXPECT_GT(slow_calls, 5);
  bed.expect_own_files(2);
  bed.lose_all_nodes();
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    slow(rank);
    EXPECT_EQ(rank.restart(), 2);
  });
}

TEST(SessionPrefix, TheVerdictOfAnOutputIsItsOwn) {
  PrefixJobBed bed;
  const std::string first = bed.settings.prefix + "/ckpt.1/";
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.hook = [first](const FileOperation& operation) -> Status {
      if (!operation.path.starts_with(first)) return {};
      return fail(Code::io, "injected: {}", operation.path);
    };
    EXPECT_FALSE(rank.write(1, flag_output));
    rank.expect_written(2, flag_output);
    rank.comm.barrier();
    rank.hook = nullptr;
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.2", "ckpt.1"}));
}

TEST(SessionPrefix, AnotherNumberOfRanksIsRefusedWithBothNumbersAndBeginsNothingInItsPlace) {
  PrefixJobBed bed;
  bed.write_and_finalize({1, 2});
  bed.lose_all_nodes();
  const Nodes six = {"n0", "n0", "n1", "n1", "n2", "n2"};
  const auto is_refused = [](const Status& status) {
    return !status && status.error().code == Code::wrong_ranks;
  };
  for (const bool asks_first : {true, false})
    bed.run_well(six, [&](JobRank& rank) {
      if (asks_first) {
        const auto found = rank.session->have_restart();
        ASSERT_FALSE(found);
        EXPECT_EQ(found.error().code, Code::wrong_ranks);
        EXPECT_NE(found.error().text.find("by 8 ranks, and this run has 6"), std::string::npos);
      }
      EXPECT_TRUE(is_refused(rank.session->start_checkpoint()));
      EXPECT_TRUE(is_refused(rank.session->start_output("two", flag_output)));
      EXPECT_TRUE(is_refused(rank.session->datasets().current("ckpt.1")));
    });
  bed.expect_own_files(2);
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  bed.lose_all_nodes();
  bed.run_well(six, [](JobRank& rank) {
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.2")) << "what is in the way can be deleted";
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.1"));
    rank.expect_written(3);
  });
  EXPECT_TRUE(bed.listed().empty());
}

TEST(SessionPrefix, WhatMustNotBePassedOverIsNotWrittenOver) {
  PrefixJobBed bed;
  bed.write_and_finalize({1, 2});
  bed.lose_all_nodes();
  flip_bit(bed.file(2, 5));
  bed.settings.on_fetch_fail = OnFetchFail::stop;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_FALSE(rank.session->have_restart());
    EXPECT_FALSE(rank.session->start_checkpoint());
  });
}

TEST(SessionPrefix, WhereOnlyQuarantinedOnesAreLeftItIsSaidLoudly) {
  PrefixJobBed bed;
  bed.settings.prefix_size = 1;
  bed.write_and_finalize({1, 2});
  bed.settings.restart_attempts = 1;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
    EXPECT_TRUE(rank.session->start_restart());
  });
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_FALSE(rank.session->have_restart().value());
    EXPECT_FALSE(rank.session->have_restart().value());
  });
  const std::string said = bed.log_text();
  EXPECT_NE(said.find("THE RUN STARTS FROM SCRATCH"), std::string::npos) << said;
  EXPECT_EQ(said.find("THE RUN STARTS"), said.rfind("THE RUN STARTS")) << said;
  EXPECT_NE(said.find("cairn index quarantine --lift ckpt.2"), std::string::npos) << said;
  EXPECT_NE(said.find("until SCR_PREFIX_SIZE"), std::string::npos) << said;
}

TEST(SessionPrefix, AQuarantinedOneTakesNoOthersPlace) {
  PrefixJobBed bed;
  bed.settings.stores[0].count = 2;
  bed.settings.flush_interval = 1;
  bed.write(four_nodes(), {1, 2});
  bed.settings.restart_attempts = 1;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
    EXPECT_TRUE(rank.session->start_restart());
  });
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 1);
    rank.expect_written(3);
  });
  EXPECT_EQ(bed.parts("n0", 1).size(), 2U);
  EXPECT_EQ(bed.parts("n0", 3).size(), 2U);
  EXPECT_TRUE(bed.parts("n0", 2).empty());
}

TEST(SessionPrefix, ACheckpointWhoseRestartsDieIsQuarantined) {
  PrefixJobBed bed;
  bed.write_and_finalize({1, 2, 3, 4});
  const auto die_in_restart = [&] {
    bed.run_well(four_nodes(), [](JobRank& rank) {
      EXPECT_EQ(rank.session->have_restart().value(), "ckpt.4");
      EXPECT_TRUE(rank.session->start_restart());
    });
  };
  for (int attempt = 0; attempt < 3; ++attempt) {
    bed.lose_all_nodes();
    die_in_restart();
  }
  EXPECT_TRUE(bed.logs("CAIRN_RESTART_ATTEMPTS")) << bed.log_text();
  EXPECT_EQ(bed.restart(four_nodes()), 2) << "although the cache has the other one";
}

TEST(SessionPrefix, OfDatasetsWithOneNameTheOldestLeaveTheWindow) {
  PrefixJobBed bed;
  bed.settings.prefix_size = 2;
  bed.settings.flush_interval = 1;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    for (int i = 0; i < 4; ++i) rank.expect_written(1);
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.1", "ckpt.1"}));
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  EXPECT_TRUE(bed.logs("dataset 4 (ckpt.1) was fetched")) << bed.log_text();
}

TEST(SessionPrefix, AnotherNumberOfRanksIsRefusedEveryTimeItIsAsked) {
  PrefixJobBed bed;
  bed.write_and_finalize({1, 2});
  bed.lose_all_nodes();
  bed.run_well({"n0", "n0"}, [](JobRank& rank) {
    for (int times = 0; times < 2; ++times) EXPECT_FALSE(rank.session->have_restart());
  });
}

TEST(SessionPrefix, ANodeThatDoesNotSeeTheDirectoryMarksNothing) {
  PrefixJobBed bed;
  bed.write_and_finalize({1, 2});
  bed.lose_all_nodes();
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    if (rank.number() == 6)
      rank.hook = [&bed](const FileOperation& operation) -> Status {
        if (!operation.path.starts_with(bed.settings.prefix)) return {};
        return fail(Code::not_found, "cannot find {}", operation.path);
      };
    const auto found = rank.session->have_restart();
    ASSERT_FALSE(found);
    EXPECT_NE(found.error().text.find("does not see"), std::string::npos) << found.error().text;
    rank.hook = nullptr;
  });
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

TEST(SessionPrefix, OnlyTheNewestCheckpointsAreKeptThere) {
  PrefixJobBed bed;
  bed.settings.prefix_size = 2;
  bed.settings.flush_interval = 1;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1, flag_output);
    for (const int dataset : {2, 3, 4, 5}) rank.expect_written(dataset);
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.5", "ckpt.4", "ckpt.1"}));
  EXPECT_FALSE(fs::exists(bed.settings.prefix + "/ckpt.2"));
  bed.expect_own_files(1);
  bed.expect_own_files(4);
}

/// By any way of deleting. The user has moved it to an archive, and left a link.
TEST(SessionPrefix, WhatALinkLeadsToIsNotDeleted) {
  for (const std::string by : {"SCR_Delete", "SCR_PREFIX_SIZE", "SCR_PREFIX_PURGE"}) {
    PrefixJobBed bed;
    bed.settings.flush_interval = 1;
    bed.write_and_finalize({1, 2});
    const std::string archive = bed.node("archive");
    fs::rename(bed.settings.prefix + "/ckpt.1", archive);
    fs::create_directory_symlink(archive, bed.settings.prefix + "/ckpt.1");
    bed.settings.prefix_size = by == "SCR_PREFIX_SIZE" ? 2 : 0;
    bed.settings.prefix_purge = by == "SCR_PREFIX_PURGE";
    bed.run_well(four_nodes(), [&](JobRank& rank) {
      EXPECT_TRUE(by != "SCR_Delete" || rank.session->datasets().remove("ckpt.1"));
      if (by == "SCR_PREFIX_SIZE") rank.expect_written(3);
    });
    EXPECT_TRUE(bed.logs("16 of its files stay, because a link leads")) << by << bed.log_text();
    EXPECT_EQ(std::distance(fs::directory_iterator(archive), {}), 16) << by;
    const Names listed = bed.listed();
    EXPECT_EQ(std::count(listed.begin(), listed.end(), "ckpt.1"), 0) << by;
  }
}

/// Checkpoint 2 is damaged, or restarts from it have died too often.
TEST(SessionPrefix, WhatNoRunCanRestartFromTakesNoPlaceInTheWindow) {
  for (const bool damaged : {true, false}) {
    PrefixJobBed bed;
    bed.settings.prefix_size = 2;
    bed.settings.flush_interval = 1;
    bed.settings.restart_attempts = 1;
    bed.write_and_finalize({1, 2});
    if (damaged)
      flip_bit(bed.file(2, 1));
    else
      bed.run_well(four_nodes(), [](JobRank& rank) {
        EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
        EXPECT_TRUE(rank.session->start_restart());
      });
    bed.lose_all_nodes();
    EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(3); }), 1);
    EXPECT_EQ(bed.listed(), Names({"ckpt.3", "ckpt.1"})) << damaged;
    EXPECT_FALSE(fs::exists(bed.file(2, 0)));
    bed.run_well(four_nodes(), [](JobRank& rank) { rank.expect_written(4); });
    EXPECT_EQ(bed.listed(), Names({"ckpt.4", "ckpt.3"})) << damaged;
  }
}

TEST(SessionPrefix, CurrentDropAndDelete) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 1;
  bed.write_and_finalize({1, 2, 3});
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_TRUE(rank.session->datasets().drop("ckpt.3"));
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.1"));
    EXPECT_TRUE(rank.session->datasets().remove("no such name"));
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.2"}));
  bed.expect_own_files(3);
  EXPECT_FALSE(fs::exists(bed.settings.prefix + "/ckpt.1"));
}

TEST(SessionPrefix, AFlushThatDiedIsEndedByTheNextInit) {
  PrefixJobBed bed;
  bed.write(four_nodes(), {1, 2, 3});
  EXPECT_FALSE(bed.run(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (is_done_marker(operation, 0)) throw Crash{};  // which has made the plan before
      return {};
    };
    (void)rank.write(4);
  }));
  EXPECT_EQ(bed.listed(), Names({"ckpt.2"}));
  bed.run_well(four_nodes(), [](JobRank& rank) { EXPECT_EQ(rank.restart(), 4); });
  EXPECT_TRUE(bed.logs("the flush that an earlier run began")) << bed.log_text();
  EXPECT_EQ(bed.listed(), Names({"ckpt.4", "ckpt.2"}));
  bed.expect_own_files(4);
}

/// The caches cannot restore it any more; but what the lost node had is on its way already, and the
/// rest is still there.
TEST(SessionPrefix, AFlushIsEndedThoughANodeIsLostThatHadDoneItsPart) {
  PrefixJobBed bed;
  bed.lose_node_that_has_flushed();
  bed.run_well(four_nodes(), [](JobRank& rank) { EXPECT_EQ(rank.restart(), 4); });
  EXPECT_TRUE(bed.logs("the flush that an earlier run began")) << bed.log_text();
  EXPECT_TRUE(bed.logs("was fetched from")) << bed.log_text();
  bed.expect_own_files(4);
}

/// Of all calls that one rank makes in the prefix directory, the run dies before one.
class SessionPrefixCrash : public ::testing::TestWithParam<int> {};

TEST_P(SessionPrefixCrash, InAFlushLosesNothing) {
  bool crashed = true;
  for (int step = 0; crashed; step += steps_between_deaths()) {
    PrefixJobBed bed;
    bed.write(four_nodes(), {1, 2, 3});
    crashed = !bed.run(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.init());
      EXPECT_EQ(rank.restart(), 3);
      if (rank.number() == GetParam()) rank.hook = crash_after(step, bed.settings.prefix);
      rank.expect_written(4);
      rank.hook = nullptr;
    });
    ASSERT_EQ(bed.restart(four_nodes()), 4) << step;  // and copies it if it was not yet
    bed.lose_all_nodes();
    ASSERT_EQ(bed.restart(four_nodes()), 4) << step;
    bed.expect_own_files(4);
  }
}

TEST_P(SessionPrefixCrash, InAFetchLosesNothing) {
  bool crashed = true;
  for (int step = 0; crashed; step += steps_between_deaths()) {
    PrefixJobBed bed;
    bed.write_and_finalize({1, 2});
    bed.lose_all_nodes();
    crashed = !bed.run(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.init());
      if (rank.number() == GetParam()) rank.hook = crash_after(step);
      EXPECT_EQ(rank.restart(), 2);
      rank.hook = nullptr;
    });
    ASSERT_EQ(bed.restart(four_nodes()), 2) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Session, SessionPrefixCrash, ::testing::Values(0, 5));

}  // namespace
}  // namespace cairn
