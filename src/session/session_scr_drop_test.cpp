// What a program drops or deletes in a prefix directory where SCR left checkpoints.

#include "session/scr_cluster.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

TEST(SessionScrDrop, AProgramThatDropsANameDropsTheNewestCheckpointOfThatName) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.6");
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 6);
    rank.expect_written(12);
    EXPECT_TRUE(rank.session->drop("ckpt.12"));
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_EQ(cluster.listed(), Names({"ckpt.6"}));
}

TEST(SessionScrDrop, WhatCairnWroteAgainAndDroppedIsNotImportedAsScrs) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  cluster.settings.current = "ckpt.6";
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 6);
    ASSERT_TRUE(rank.session->start_output("ckpt.12", flag_checkpoint));
    const auto path = rank.session->route_file(
        fmt::format("{}/ckpt.12/rank_{}", rank.settings.prefix, rank.number()));
    std::ofstream(path.value()) << std::string(expected(12, rank.number()).size(), '-');
    EXPECT_TRUE(rank.session->complete_output(true));
    EXPECT_TRUE(rank.session->drop("ckpt.12"));
  });
  cluster.lose_all_nodes();
  cluster.settings.current.clear();
  EXPECT_EQ(restart_from_scr(cluster), 6);
  EXPECT_TRUE(cluster.said("was written again for dropped dataset")) << cluster.said();
}

TEST(SessionScrDrop, AProgramThatDeletesANameDeletesAllCheckpointsOfThatName) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  cluster.settings.current = "ckpt.6";
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 6);
    rank.expect_written(12);
    EXPECT_TRUE(rank.session->remove("ckpt.12"));
  });
  EXPECT_FALSE(fs::exists(cluster.scr.path("ckpt.12")));
  cluster.settings.current.clear();
  EXPECT_EQ(restart_from_scr(cluster), 6);
  EXPECT_FALSE(cluster.said("cannot be imported")) << cluster.said();
}

TEST(SessionScrDrop, ANameThatTheProgramDeletesIsGone) {
  ScrCluster cluster;
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 12);
    EXPECT_TRUE(rank.session->remove("ckpt.12"));
  });
  EXPECT_FALSE(fs::exists(cluster.settings.prefix + "/ckpt.12"));
}

TEST(SessionScrDrop, WhatTheProgramDeletedDoesNotComeBackEvenWhereItsFilesStay) {
  for (const bool is_changed : {false, true}) {
    ScrCluster cluster;
    cluster.scr.add(12, 8);
    cluster.scr.write("ckpt.12");
    cluster.run_well(four_nodes(), [&](JobRank& rank) {
      EXPECT_EQ(restart_from_scr(rank), 12);
      rank.comm.barrier();
      for (int file = 0; is_changed && rank.number() == 0 && file < 8; ++file)
        fs::last_write_time(cluster.scr.path(fmt::format("ckpt.12/rank_{}", file)),
                            fs::file_time_type::clock::now());
      rank.comm.barrier();
      EXPECT_TRUE(rank.session->remove("ckpt.12"));
    });
    EXPECT_EQ(fs::exists(cluster.settings.prefix + "/ckpt.12/rank_0"), is_changed);
    cluster.settings.on_fetch_fail = OnFetchFail::stop;
    EXPECT_EQ(restart_from_scr(cluster), 0);
    EXPECT_FALSE(cluster.said("cannot be imported")) << cluster.said();
  }
}

TEST(SessionScrDrop, WhatTheProgramDropsBeforeItIsImportedIsNeverTaken) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 12);
    EXPECT_TRUE(rank.session->drop("ckpt.6"));
  });
  EXPECT_TRUE(fs::exists(cluster.scr.path("ckpt.6/rank_0")));
  fs::remove(cluster.settings.prefix + "/ckpt.12/rank_5");
  EXPECT_EQ(restart_from_scr(cluster), 0);
}

TEST(SessionScrDrop, ACheckpointThatIsNotWholeStopsNoRunOnceTheProgramHasDroppedIt) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  fs::remove(cluster.settings.prefix + "/ckpt.12/rank_5");
  cluster.settings.on_fetch_fail = OnFetchFail::stop;
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_FALSE(rank.session->have_restart());
    EXPECT_TRUE(rank.session->drop("ckpt.12"));
    EXPECT_EQ(restart_from_scr(rank), 6);
  });
}

TEST(SessionScrDrop, WhatTheProgramDeletesBeforeItIsImportedIsGone) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 12);
    EXPECT_TRUE(rank.session->remove("ckpt.6"));
  });
  EXPECT_FALSE(fs::exists(cluster.scr.path("ckpt.6")));
  EXPECT_TRUE(fs::exists(cluster.scr.path("ckpt.12/rank_0")));
  fs::remove(cluster.settings.prefix + "/ckpt.12/rank_5");
  EXPECT_EQ(restart_from_scr(cluster), 0);
}

TEST(SessionScrDrop, WhatTheProgramDeletesAndIsNotWholeIsDroppedAndItsFilesStay) {
  ScrCluster cluster;
  cluster.scr.add(6, 8);
  cluster.scr.add(12, 8);
  cluster.scr.write("ckpt.12");
  const std::string lost = cluster.scr.path("ckpt.6/rank_5");
  fs::rename(lost, lost + ".aside");
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_TRUE(rank.session->remove("ckpt.6"));
    EXPECT_EQ(restart_from_scr(rank), 12);
  });
  EXPECT_TRUE(cluster.said("ckpt.6/rank_5")) << cluster.said();
  EXPECT_TRUE(fs::exists(cluster.scr.path("ckpt.6/rank_0")));
  fs::rename(lost + ".aside", lost);
  fs::remove(cluster.settings.prefix + "/ckpt.12/rank_5");
  EXPECT_EQ(restart_from_scr(cluster), 0);
}

TEST(SessionScrDrop, WhatIsNewerThanTheNamedOneIsDroppedWithItWhereThatIsAskedFor) {
  ScrCluster cluster;
  for (const int dataset : {6, 9, 12}) cluster.scr.add(static_cast<std::uint64_t>(dataset), 8);
  cluster.scr.write("ckpt.12");
  cluster.settings.drop_after_current = true;
  cluster.run_well(four_nodes(),
                   [](JobRank& rank) { EXPECT_TRUE(rank.session->current("ckpt.6")); });
  EXPECT_EQ(restart_from_scr(cluster), 6);
  EXPECT_TRUE(fs::exists(cluster.scr.path("ckpt.9/rank_0")));
}

/// Of a purged dataset only a note is left, and no file of it.
TEST(SessionScrDrop, WhatCairnPurgedHidesNothingThatScrLeft) {
  ScrCluster cluster;
  cluster.write_and_finalize({18});
  cluster.settings.prefix_purge = true;
  cluster.run_well(four_nodes(), [](JobRank& rank) { EXPECT_TRUE(rank.session->finalize()); });
  ASSERT_TRUE(fs::exists(cluster.scr.path(".cairn/dropped")));
  cluster.settings.prefix_purge = false;
  cluster.lose_all_nodes();
  cluster.scr.add(6, 8);
  cluster.scr.write("ckpt.6");
  EXPECT_EQ(restart_from_scr(cluster), 6);
}

}  // namespace
}  // namespace cairn
