// A run in a prefix directory where SCR left checkpoints.

#include <atomic>

#include "support/scr_job_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

TEST(SessionScr, ARunRestartsFromWhatScrLeftAndSaysSo) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  const auto before = bed.left_by_scr();
  EXPECT_EQ(bed.restart_from_scr(), 12);
  EXPECT_TRUE(bed.logs("SCR's dataset 12 (ckpt.12)")) << bed.log_text();
  EXPECT_EQ(bed.listed(), Names({"ckpt.12"})) << "no older one is read";
  EXPECT_EQ(bed.left_by_scr(), before);
  EXPECT_EQ(bed.restart_from_scr(), 12);
  EXPECT_FALSE(bed.logs("is imported")) << bed.log_text();
}

TEST(SessionScr, TheCheckpointThatScrCallsCurrentComesFirst) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.6");
  EXPECT_EQ(bed.restart_from_scr(), 6);
}

TEST(SessionScr, TheCheckpointThatTheUserNamesComesFirst) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  bed.settings.current = "ckpt.6";
  EXPECT_EQ(bed.restart_from_scr(), 6);
}

TEST(SessionScr, ACheckpointIsImportedWhenTheProgramNamesIt) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_TRUE(rank.session->datasets().current("ckpt.6"));
    EXPECT_EQ(restart_from_scr(rank), 6);
  });
}

TEST(SessionScr, NumbersGoOnAfterThoseOfScrAndItsFilesStay) {
  ScrJobBed bed;
  bed.scr.add(12, 8);
  bed.scr.add(13, 8).complete_in_index = false;
  bed.scr.write("ckpt.12");
  const auto before = bed.left_by_scr();
  bed.settings.prefix_size = 1;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 12);
    rank.expect_written(18);
    rank.expect_written(24);
    rank.expect_written(30);
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.30", "ckpt.12"})) << "the window counts Cairn's only";
  const auto after = bed.left_by_scr();
  for (const auto& [name, content] : before) EXPECT_EQ(after.at(name), content) << name;
  std::vector<std::string> damaged;
  const auto files = make_posix_files();
  EXPECT_EQ(read_listing(*files, {bed.settings.prefix}, damaged)->front().info.number, 16U);
  EXPECT_EQ(bed.restart(four_nodes()), 30);
}

TEST(SessionScr, WhereTheNewestIsNotWholeTheNextOlderIsTaken) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  fs::remove(bed.settings.prefix + "/ckpt.12/rank_5");
  EXPECT_EQ(bed.restart_from_scr(), 6);
  EXPECT_TRUE(bed.logs("ckpt.12/rank_5")) << bed.log_text();
}

TEST(SessionScr, WhatLaterTurnsOutDamagedGivesWayToTheNextOlder) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  bed.run_well(four_nodes(), [](JobRank&) {});
  flip_bit(bed.settings.prefix + "/ckpt.12/rank_5");
  EXPECT_EQ(bed.restart_from_scr(), 6);
}

TEST(SessionScr, WhereNothingIsWholeTheRunSaysWhyItStartsFromScratch) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.write("ckpt.6");
  fs::remove(bed.settings.prefix + "/ckpt.6/rank_5");
  EXPECT_EQ(bed.restart_from_scr(), 0);
  EXPECT_TRUE(bed.logs("THE RUN STARTS FROM SCRATCH: SCR left checkpoints")) << bed.log_text();
  EXPECT_TRUE(bed.logs("ckpt.6/rank_5")) << bed.log_text();
}

TEST(SessionScr, ACheckpointThatScrDidNotCompleteIsNamedToo) {
  ScrJobBed bed;
  bed.scr.add(6, 8).complete_in_index = false;
  bed.scr.write();
  EXPECT_EQ(bed.restart_from_scr(), 0);
  EXPECT_TRUE(bed.logs("THE RUN STARTS FROM SCRATCH")) << bed.log_text();
  EXPECT_TRUE(bed.logs("SCR's dataset 6 (ckpt.6)")) << bed.log_text();
}

TEST(SessionScr, AnIndexThatIsDamagedIsNamed) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.write("ckpt.6");
  fs::resize_file(bed.settings.prefix + "/.scr/index.scr", 30);
  EXPECT_EQ(bed.restart_from_scr(), 0);
  EXPECT_TRUE(bed.logs("THE RUN STARTS FROM SCRATCH")) << bed.log_text();
  EXPECT_TRUE(bed.logs(".scr/index.scr")) << bed.log_text();
}

TEST(SessionScr, NothingOlderIsTakenWhereTheRunIsToStopAtDamage) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  fs::remove(bed.settings.prefix + "/ckpt.12/rank_5");
  bed.settings.on_fetch_fail = OnFetchFail::stop;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_FALSE(rank.session->have_restart());
    EXPECT_FALSE(rank.session->start_checkpoint());
  });
  EXPECT_EQ(bed.listed(), Names()) << "nor is an older one imported";
}

TEST(SessionScr, AnotherNumberOfRanksIsRefusedWithBothNumbers) {
  ScrJobBed bed;
  bed.scr.add(12, 5);
  bed.scr.write("ckpt.12");
  bed.run_well(four_nodes(), [](JobRank& rank) {
    const auto name = rank.session->have_restart();
    ASSERT_FALSE(name);
    EXPECT_EQ(name.error().code, Code::wrong_ranks) << name.error().text;
  });
}

TEST(SessionScr, MoreAndFewerRanksThanWroteItImportIt) {
  for (const std::size_t writers : {3, 130}) {
    ScrJobBed bed;
    bed.scr.add(12, writers);
    bed.scr.write("ckpt.12");
    bed.settings.elastic = true;
    bed.run_well(four_nodes(), [&](JobRank& rank) {
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
  ScrJobBed bed;
  bed.write_and_finalize({1});
  auto& later = bed.scr.add(9, 8);
  later.facts.created_us = bed.clock->now_us() + 1'000'000;
  bed.scr.write("ckpt.9");
  EXPECT_EQ(bed.restart_from_scr(), 9);
}

TEST(SessionScr, WhatCairnMadeAfterScrStaysFirst) {
  ScrJobBed bed;
  bed.scr.add(9, 8);
  bed.scr.write("ckpt.9");
  bed.write_and_finalize({18});
  EXPECT_EQ(bed.restart(four_nodes()), 18);
}

TEST(SessionScr, WhatScrCallsCurrentDoesNotCountOnceCairnHasMadeANewerCheckpoint) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  bed.write_and_finalize({18});
  bed.scr.write("ckpt.6");
  fs::remove(bed.scr.path("ckpt.6/rank_5"));
  bed.settings.on_fetch_fail = OnFetchFail::stop;
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 18);
  EXPECT_EQ(bed.listed(), Names({"ckpt.18", "ckpt.12"})) << "ckpt.6 is not imported";
  EXPECT_FALSE(bed.logs("ckpt.6")) << bed.log_text();
}

TEST(SessionScr, CairnsCheckpointsAreNewerThanThoseOfScrThatItCouldNotImport) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8).facts.created_us = bed.clock->now_us() + 3'600'000'000;
  bed.scr.write("ckpt.12");
  const std::string lost = bed.scr.path("ckpt.12/rank_5");
  fs::rename(lost, lost + ".aside");
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 6);
    rank.expect_written(18);
    EXPECT_TRUE(rank.session->finalize());
  });
  fs::rename(lost + ".aside", lost);
  EXPECT_EQ(bed.restart(four_nodes()), 18);
  EXPECT_EQ(bed.listed(), Names({"ckpt.18", "ckpt.6"}));
}

TEST(SessionScr, APurgeKeepsTheFilesOfScrAndNoLaterRunTakesThem) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  const auto before = bed.left_by_scr();
  bed.settings.prefix_purge = true;
  EXPECT_EQ(bed.restart_from_scr(), 0);
  EXPECT_TRUE(bed.logs("ckpt.6, ckpt.12")) << bed.log_text();
  bed.settings.prefix_purge = false;
  EXPECT_EQ(bed.restart_from_scr(), 0);
  EXPECT_EQ(bed.left_by_scr(), before);
}

TEST(SessionScr,
     ACheckpointThatTheProgramNamesAndThatIsNotWholeIsAnErrorAndTheRestartIsStillOffered) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  fs::remove(bed.settings.prefix + "/ckpt.6/rank_5");
  bed.run_well(four_nodes(), [](JobRank& rank) {
    const Status named = rank.session->datasets().current("ckpt.6");
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
  ScrJobBed bed;
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  std::atomic<bool> fails = true;
  bed.run(four_nodes(), [&](JobRank& rank) {
    fail_at(rank, ".cairn/dropped", fails);
    ASSERT_TRUE(rank.init());
    EXPECT_FALSE(rank.session->have_restart());
    EXPECT_FALSE(rank.session->datasets().current("ckpt.12"));
    rank.comm.barrier();
    fails = false;
    rank.comm.barrier();
    EXPECT_EQ(restart_from_scr(rank), 12);
  });
}

TEST(SessionScr, APurgeThatCannotReadWhatScrLeftIsRefused) {
  for (const std::string unread : {".scr/index.scr", "rank2file"}) {
    ScrJobBed bed;
    bed.scr.add(12, 8);
    bed.scr.write("ckpt.12");
    bed.settings.prefix_purge = true;
    const std::atomic<bool> fails = true;
    bed.run(four_nodes(), [&](JobRank& rank) {
      fail_at(rank, unread, fails);
      EXPECT_FALSE(rank.init()) << unread;
    });
  }
}

TEST(SessionScr, ANameIsFoundAgainAfterItCouldNotBeRead) {
  ScrJobBed bed;
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  std::atomic<bool> fails = true;
  bed.run(four_nodes(), [&](JobRank& rank) {
    fail_at(rank, "rank2file", fails);
    ASSERT_TRUE(rank.init());
    EXPECT_FALSE(rank.session->have_restart());
    EXPECT_TRUE(rank.session->datasets().drop("unknown"))
        << "which has what failed asked for again";
    rank.comm.barrier();
    fails = false;
    rank.comm.barrier();
    EXPECT_TRUE(rank.session->datasets().current("ckpt.12"));
    EXPECT_EQ(restart_from_scr(rank), 12);
  });
}

TEST(SessionScr, AFileThatNoRankWroteIsRefusedWithoutAWordAboutCaches) {
  ScrJobBed bed;
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(*rank.session->have_restart());
    ASSERT_TRUE(rank.session->start_restart());
    const auto path = rank.session->route_file(rank.settings.prefix + "/ckpt.12/unknown");
    ASSERT_FALSE(path);
    EXPECT_EQ(path.error().text.find("CAIRN_BROADCAST"), std::string::npos) << path.error().text;
  });
}

TEST(SessionScr, WithoutFetchingNothingIsImportedAndTheRunSaysThatItStartsFromScratch) {
  ScrJobBed bed;
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  bed.settings.fetch = false;
  EXPECT_EQ(bed.restart_from_scr(), 0);
  EXPECT_TRUE(bed.logs("THE RUN STARTS FROM SCRATCH")) << bed.log_text();
  EXPECT_TRUE(bed.logs("(ckpt.12), which SCR left, is not imported, because SCR_FETCH=0"))
      << bed.log_text();
  EXPECT_FALSE(fs::exists(bed.scr.path(".cairn/datasets")) && !bed.listed().empty());
}

/// SCR's newest checkpoint, of which neither the index nor a summary says when it was made.
void add_damaged(ScrJobBed& bed) {
  bed.scr.add(6, 8);
  bed.scr.add(12, 8).has_facts_in_index = false;
  bed.scr.write("ckpt.12");
  fs::remove(bed.scr.path(".scr/scr.dataset.12/summary.scr"));
}

TEST(SessionScr, ADamagedEntryOfTheIndexIsNamedBeforeAnOlderOneIsTaken) {
  ScrJobBed bed;
  add_damaged(bed);
  EXPECT_EQ(bed.restart_from_scr(), 6);
  EXPECT_TRUE(bed.logs("SCR's dataset 12 (ckpt.12) cannot be imported")) << bed.log_text();
}

TEST(SessionScr, ADamagedEntryOfTheIndexEndsARunThatIsToStopAtDamage) {
  ScrJobBed bed;
  add_damaged(bed);
  bed.settings.on_fetch_fail = OnFetchFail::stop;
  bed.run_well(four_nodes(), [](JobRank& rank) { EXPECT_FALSE(rank.session->have_restart()); });
}

TEST(SessionScr, WhatIsDamagedIsNotNamedAgainAfterAPurge) {
  ScrJobBed bed;
  add_damaged(bed);
  bed.settings.prefix_purge = true;
  EXPECT_EQ(bed.restart_from_scr(), 0);
  bed.settings.prefix_purge = false;
  EXPECT_EQ(bed.restart_from_scr(), 0);
  EXPECT_FALSE(bed.logs("ckpt.12")) << bed.log_text();
}

TEST(SessionScr, WhereScrLeftNoIndexNothingIsMade) {
  ScrJobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) { EXPECT_EQ(rank.restart(), 0); });
  EXPECT_FALSE(bed.logs("SCR's")) << bed.log_text();
  EXPECT_FALSE(fs::exists(bed.settings.prefix + "/.cairn/owner"));
}

/// At each operation of rank 0, and of another rank: the next run imports it whole.
TEST(SessionScr, ACrashWhileImportingLosesNothing) {
  for (const int victim : {0, 5}) {
    bool is_done = false;
    for (int step = 0; !is_done; step += sanitized ? 11 : 3) {
      ScrJobBed bed;
      bed.scr.add(12, 8);
      bed.scr.write("ckpt.12");
      const auto before = bed.left_by_scr();
      is_done = bed.run(four_nodes(), [&](JobRank& rank) {
        if (rank.number() == victim) rank.hook = crash_after(step);
        if (rank.init()) (void)rank.session->have_restart();
        rank.hook = nullptr;
      });
      ASSERT_EQ(bed.restart_from_scr(), 12) << "rank " << victim << ", step " << step;
      ASSERT_EQ(bed.left_by_scr(), before);
    }
  }
}

}  // namespace
}  // namespace cairn
