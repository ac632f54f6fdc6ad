// A run in a prefix directory where SCR left checkpoints.

#include <atomic>

#include "session/scr_cluster.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

TEST(SessionScr, ARunRestartsFromWhatScrLeftAndSaysSo) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  const auto before = cluster.left_by_scr();
  EXPECT_EQ(restart_from_scr(cluster), 12);
  EXPECT_TRUE(cluster.said("SCR's dataset 12 (ckpt.12)")) << cluster.said();
  EXPECT_EQ(cluster.listed(), Names({"ckpt.12"})) << "no older one is read";
  EXPECT_EQ(cluster.left_by_scr(), before);
  EXPECT_EQ(restart_from_scr(cluster), 12);
  EXPECT_FALSE(cluster.said("is imported")) << cluster.said();
}

TEST(SessionScr, TheCheckpointThatScrCallsCurrentComesFirst) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.6");
  EXPECT_EQ(restart_from_scr(cluster), 6);
}

TEST(SessionScr, TheCheckpointThatTheUserNamesComesFirst) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  cluster.settings.current = "ckpt.6";
  EXPECT_EQ(restart_from_scr(cluster), 6);
}

TEST(SessionScr, ACheckpointIsImportedWhenTheProgramNamesIt) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_TRUE(rank.session->current("ckpt.6"));
    EXPECT_EQ(restart_from_scr(rank), 6);
  });
}

TEST(SessionScr, NumbersGoOnAfterThoseOfScrAndItsFilesStay) {
  ScrCluster cluster;
  cluster.scr.add(12, 8);
  cluster.scr.add(13, 8).complete_in_index = false;
  cluster.scr.write("ckpt.12");
  const auto before = cluster.left_by_scr();
  cluster.settings.prefix_size = 1;
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 12);
    rank.expect_written(18);
    rank.expect_written(24);
    rank.expect_written(30);
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_EQ(cluster.listed(), Names({"ckpt.30", "ckpt.12"})) << "the window counts Cairn's only";
  const auto after = cluster.left_by_scr();
  for (const auto& [name, content] : before) EXPECT_EQ(after.at(name), content) << name;
  std::vector<std::string> damaged;
  const auto files = make_posix_files();
  EXPECT_EQ(read_listing(*files, {cluster.settings.prefix}, damaged)->front().info.number, 16U);
  EXPECT_EQ(cluster.restart(four_nodes()), 30);
}

TEST(SessionScr, WhereTheNewestIsNotWholeTheNextOlderIsTaken) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  fs::remove(cluster.settings.prefix + "/ckpt.12/rank_5");
  EXPECT_EQ(restart_from_scr(cluster), 6);
  EXPECT_TRUE(cluster.said("ckpt.12/rank_5")) << cluster.said();
}

TEST(SessionScr, WhatLaterTurnsOutDamagedGivesWayToTheNextOlder) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  cluster.run_well(four_nodes(), [](JobRank&) {});
  cluster.flip(cluster.settings.prefix + "/ckpt.12/rank_5");
  EXPECT_EQ(restart_from_scr(cluster), 6);
}

TEST(SessionScr, WhereNothingIsWholeTheRunSaysWhyItStartsFromScratch) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.write("ckpt.6");
  fs::remove(cluster.settings.prefix + "/ckpt.6/rank_5");
  EXPECT_EQ(restart_from_scr(cluster), 0);
  EXPECT_TRUE(cluster.said("THE RUN STARTS FROM SCRATCH: SCR left checkpoints")) << cluster.said();
  EXPECT_TRUE(cluster.said("ckpt.6/rank_5")) << cluster.said();
}

TEST(SessionScr, ACheckpointThatScrDidNotCompleteIsNamedToo) {
  ScrCluster cluster;
  cluster.scr.add(6, 8).complete_in_index = false;
  cluster.scr.write();
  EXPECT_EQ(restart_from_scr(cluster), 0);
  EXPECT_TRUE(cluster.said("THE RUN STARTS FROM SCRATCH")) << cluster.said();
  EXPECT_TRUE(cluster.said("SCR's dataset 6 (ckpt.6)")) << cluster.said();
}

TEST(SessionScr, AnIndexThatIsDamagedIsNamed) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.write("ckpt.6");
  fs::resize_file(cluster.settings.prefix + "/.scr/index.scr", 30);
  EXPECT_EQ(restart_from_scr(cluster), 0);
  EXPECT_TRUE(cluster.said("THE RUN STARTS FROM SCRATCH")) << cluster.said();
  EXPECT_TRUE(cluster.said(".scr/index.scr")) << cluster.said();
}

TEST(SessionScr, NothingOlderIsTakenWhereTheRunIsToStopAtDamage) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  fs::remove(cluster.settings.prefix + "/ckpt.12/rank_5");
  cluster.settings.on_fetch_fail = OnFetchFail::stop;
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_FALSE(rank.session->have_restart());
    EXPECT_FALSE(rank.session->start_checkpoint());
  });
  EXPECT_EQ(cluster.listed(), Names()) << "nor is an older one imported";
}

TEST(SessionScr, AnotherNumberOfRanksIsRefusedWithBothNumbers) {
  ScrCluster cluster;
  cluster.scr.add(12, 5);
  cluster.scr.write("ckpt.12");
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    const auto name = rank.session->have_restart();
    ASSERT_FALSE(name);
    EXPECT_EQ(name.error().code, Code::wrong_ranks) << name.error().text;
  });
}

TEST(SessionScr, MoreAndFewerRanksThanWroteItImportIt) {
  for (const std::size_t writers : {3, 130}) {
    ScrCluster cluster;
    cluster.scr.add(12, writers);
    cluster.scr.write("ckpt.12");
    cluster.settings.elastic = true;
    cluster.run_well(four_nodes(), [&](JobRank& rank) {
      const auto name = rank.session->have_restart();
      ASSERT_TRUE(name) << name.error().text;
      ASSERT_EQ(*name, "ckpt.12");
      ASSERT_TRUE(rank.session->start_restart());
      for (std::size_t writer = 0; writer < writers; ++writer) {
        const auto path = rank.session->route_file(
            fmt::format("{}/ckpt.12/rank_{}", rank.settings.prefix, writer));
        ASSERT_TRUE(path) << path.error().text;
        EXPECT_EQ(read_all(*path), ScrPrefix::content_of(12, writer));
      }
      EXPECT_TRUE(rank.session->complete_restart(true));
    });
  }
}

TEST(SessionScr, WhatScrMadeAfterCairnComesFirst) {
  ScrCluster cluster;
  cluster.write_and_finalize({1});
  auto& later = cluster.scr.add(9, 8);
  later.facts.created_us = cluster.clock->now_us() + 1'000'000;
  cluster.scr.write("ckpt.9");
  EXPECT_EQ(restart_from_scr(cluster), 9);
}

TEST(SessionScr, WhatCairnMadeAfterScrStaysFirst) {
  ScrCluster cluster;
  cluster.scr.add(9, 8);
  cluster.scr.write("ckpt.9");
  cluster.write_and_finalize({18});
  EXPECT_EQ(cluster.restart(four_nodes()), 18);
}

TEST(SessionScr, WhatScrCallsCurrentDoesNotCountOnceCairnHasMadeANewerCheckpoint) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  cluster.write_and_finalize({18});
  cluster.scr.write("ckpt.6");
  fs::remove(cluster.scr.path("ckpt.6/rank_5"));
  cluster.settings.on_fetch_fail = OnFetchFail::stop;
  cluster.lose_all_nodes();
  EXPECT_EQ(cluster.restart(four_nodes()), 18);
  EXPECT_EQ(cluster.listed(), Names({"ckpt.18", "ckpt.12"})) << "ckpt.6 is not imported";
  EXPECT_FALSE(cluster.said("ckpt.6")) << cluster.said();
}

TEST(SessionScr, CairnsCheckpointsAreNewerThanThoseOfScrThatItCouldNotImport) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8).facts.created_us = cluster.clock->now_us() + 3'600'000'000;
  cluster.scr.write("ckpt.12");
  const std::string lost = cluster.scr.path("ckpt.12/rank_5");
  fs::rename(lost, lost + ".aside");
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 6);
    rank.expect_written(18);
    EXPECT_TRUE(rank.session->finalize());
  });
  fs::rename(lost + ".aside", lost);
  EXPECT_EQ(cluster.restart(four_nodes()), 18);
  EXPECT_EQ(cluster.listed(), Names({"ckpt.18", "ckpt.6"}));
}

TEST(SessionScr, APurgeKeepsTheFilesOfScrAndNoLaterRunTakesThem) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  const auto before = cluster.left_by_scr();
  cluster.settings.prefix_purge = true;
  EXPECT_EQ(restart_from_scr(cluster), 0);
  EXPECT_TRUE(cluster.said("ckpt.6, ckpt.12")) << cluster.said();
  cluster.settings.prefix_purge = false;
  EXPECT_EQ(restart_from_scr(cluster), 0);
  EXPECT_EQ(cluster.left_by_scr(), before);
}

TEST(SessionScr,
     ACheckpointThatTheProgramNamesAndThatIsNotWholeIsAnErrorAndTheRestartIsStillOffered) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  fs::remove(cluster.settings.prefix + "/ckpt.6/rank_5");
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    const Status named = rank.session->current("ckpt.6");
    ASSERT_FALSE(named);
    EXPECT_EQ(named.error().code, Code::lost) << named.error().text;
    EXPECT_EQ(restart_from_scr(rank), 12);
  });
}

/// A hook of rank 0: what has `text` in its name cannot be read while `fails`.
void fail_at(JobRank& rank, const std::string& text, const std::atomic<bool>& fails) {
  if (rank.number() != 0) return;
  rank.hook = [text, &fails](const FileOperation& operation) -> Status {
    const bool is_hit = operation.path.find(text) != std::string_view::npos;
    if (!fails || !is_hit || operation.name == "info") return {};
    return fail(Code::io, "injected: cannot {} {}", operation.name, operation.path);
  };
}

TEST(SessionScr, WhereItIsNotKnownWhatWasDroppedTheRunDoesNotStartFromScratch) {
  ScrCluster cluster;
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  std::atomic<bool> fails = true;
  cluster.run(four_nodes(), [&](JobRank& rank) {
    fail_at(rank, ".cairn/dropped", fails);
    ASSERT_TRUE(rank.init());
    EXPECT_FALSE(rank.session->have_restart());
    EXPECT_FALSE(rank.session->current("ckpt.12"));
    rank.comm.barrier();
    fails = false;
    rank.comm.barrier();
    EXPECT_EQ(restart_from_scr(rank), 12);
  });
}

TEST(SessionScr, APurgeThatCannotReadWhatScrLeftIsRefused) {
  for (const std::string unread : {".scr/index.scr", "rank2file"}) {
    ScrCluster cluster;
    cluster.scr.add(12, 8);
    cluster.scr.write("ckpt.12");
    cluster.settings.prefix_purge = true;
    const std::atomic<bool> fails = true;
    cluster.run(four_nodes(), [&](JobRank& rank) {
      fail_at(rank, unread, fails);
      EXPECT_FALSE(rank.init()) << unread;
    });
  }
}

TEST(SessionScr, ANameIsFoundAgainAfterItCouldNotBeRead) {
  ScrCluster cluster;
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  std::atomic<bool> fails = true;
  cluster.run(four_nodes(), [&](JobRank& rank) {
    fail_at(rank, "rank2file", fails);
    ASSERT_TRUE(rank.init());
    EXPECT_FALSE(rank.session->have_restart());
    EXPECT_TRUE(rank.session->drop("unknown")) << "which has what failed asked for again";
    rank.comm.barrier();
    fails = false;
    rank.comm.barrier();
    EXPECT_TRUE(rank.session->current("ckpt.12"));
    EXPECT_EQ(restart_from_scr(rank), 12);
  });
}

TEST(SessionScr, AFileThatNoRankWroteIsRefusedWithoutAWordAboutCaches) {
  ScrCluster cluster;
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(*rank.session->have_restart());
    ASSERT_TRUE(rank.session->start_restart());
    const auto path = rank.session->route_file(rank.settings.prefix + "/ckpt.12/unknown");
    ASSERT_FALSE(path);
    EXPECT_EQ(path.error().text.find("CAIRN_BROADCAST"), std::string::npos) << path.error().text;
  });
}

TEST(SessionScr, WithoutFetchingNothingIsImportedAndTheRunSaysThatItStartsFromScratch) {
  ScrCluster cluster;
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  cluster.settings.fetch = false;
  EXPECT_EQ(restart_from_scr(cluster), 0);
  EXPECT_TRUE(cluster.said("THE RUN STARTS FROM SCRATCH")) << cluster.said();
  EXPECT_TRUE(cluster.said("(ckpt.12), which SCR left, is not imported, because SCR_FETCH=0"))
      << cluster.said();
  EXPECT_FALSE(fs::exists(cluster.scr.path(".cairn/datasets")) && !cluster.listed().empty());
}

/// SCR's newest checkpoint, of which neither the index nor a summary says when it was made.
void add_damaged(ScrCluster& cluster) {
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8).has_facts_in_index = false;
  cluster.scr.write("ckpt.12");
  fs::remove(cluster.scr.path(".scr/scr.dataset.12/summary.scr"));
}

TEST(SessionScr, ADamagedEntryOfTheIndexIsNamedBeforeAnOlderOneIsTaken) {
  ScrCluster cluster;
  add_damaged(cluster);
  EXPECT_EQ(restart_from_scr(cluster), 6);
  EXPECT_TRUE(cluster.said("SCR's dataset 12 (ckpt.12) cannot be imported")) << cluster.said();
}

TEST(SessionScr, ADamagedEntryOfTheIndexEndsARunThatIsToStopAtDamage) {
  ScrCluster cluster;
  add_damaged(cluster);
  cluster.settings.on_fetch_fail = OnFetchFail::stop;
  cluster.run_well(four_nodes(), [](JobRank& rank) { EXPECT_FALSE(rank.session->have_restart()); });
}

TEST(SessionScr, WhatIsDamagedIsNotNamedAgainAfterAPurge) {
  ScrCluster cluster;
  add_damaged(cluster);
  cluster.settings.prefix_purge = true;
  EXPECT_EQ(restart_from_scr(cluster), 0);
  cluster.settings.prefix_purge = false;
  EXPECT_EQ(restart_from_scr(cluster), 0);
  EXPECT_FALSE(cluster.said("ckpt.12")) << cluster.said();
}

TEST(SessionScr, WhereScrLeftNoIndexNothingIsMade) {
  ScrCluster cluster;
  cluster.run_well(four_nodes(), [](JobRank& rank) { EXPECT_EQ(rank.restart(), 0); });
  EXPECT_FALSE(cluster.said("SCR's")) << cluster.said();
  EXPECT_FALSE(fs::exists(cluster.settings.prefix + "/.cairn/owner"));
}

/// At each operation of rank 0, and of another rank: the next run imports it whole.
TEST(SessionScr, ACrashWhileImportingLosesNothing) {
  for (const int victim : {0, 5}) {
    bool is_done = false;
    for (int step = 0; !is_done; step += sanitized ? 11 : 3) {
      ScrCluster cluster;
      cluster.scr.add(12, 8);
      cluster.scr.write("ckpt.12");
      const auto before = cluster.left_by_scr();
      is_done = cluster.run(four_nodes(), [&](JobRank& rank) {
        if (rank.number() == victim) rank.hook = crash_after(step);
        if (rank.init()) (void)rank.session->have_restart();
        rank.hook = nullptr;
      });
      ASSERT_EQ(restart_from_scr(cluster), 12) << "rank " << victim << ", step " << step;
      ASSERT_EQ(cluster.left_by_scr(), before);
    }
  }
}

}  // namespace
}  // namespace cairn
