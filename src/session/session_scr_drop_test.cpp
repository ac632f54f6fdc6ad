// What a program drops or deletes in a prefix directory where SCR left checkpoints.

#include "support/scr_job_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

TEST(SessionScrDrop, AProgramThatDropsANameDropsTheNewestCheckpointOfThatName) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.6");
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 6);
    rank.expect_written(12);
    EXPECT_TRUE(rank.session->datasets().drop("ckpt.12"));
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.6"}));
}

TEST(SessionScrDrop, WhatCairnWroteAgainAndDroppedIsNotImportedAsScrs) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  bed.settings.current = "ckpt.6";
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 6);
    ASSERT_TRUE(rank.session->start_output("ckpt.12", flag_checkpoint));
    const auto path = rank.session->route_file(
        fmt::format("{}/ckpt.12/rank_{}", rank.settings.prefix, rank.number()));
    std::ofstream(path.value()) << std::string(expected(12, rank.number()).size(), '-');
    EXPECT_TRUE(rank.session->complete_output(true));
    EXPECT_TRUE(rank.session->datasets().drop("ckpt.12"));
  });
  bed.lose_all_nodes();
  bed.settings.current.clear();
  EXPECT_EQ(bed.restart_from_scr(), 6);
  EXPECT_TRUE(bed.logs("was written again for dropped dataset")) << bed.log_text();
}

TEST(SessionScrDrop, AProgramThatDeletesANameDeletesAllCheckpointsOfThatName) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  bed.settings.current = "ckpt.6";
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 6);
    rank.expect_written(12);
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.12"));
  });
  EXPECT_FALSE(fs::exists(bed.scr.path("ckpt.12")));
  bed.settings.current.clear();
  EXPECT_EQ(bed.restart_from_scr(), 6);
  EXPECT_FALSE(bed.logs("cannot be imported")) << bed.log_text();
}

TEST(SessionScrDrop, ANameThatTheProgramDeletesIsGone) {
  ScrJobBed bed;
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 12);
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.12"));
  });
  EXPECT_FALSE(fs::exists(bed.settings.prefix + "/ckpt.12"));
}

TEST(SessionScrDrop, WhatTheProgramDeletedDoesNotComeBackEvenWhereItsFilesStay) {
  for (const bool is_changed : {false, true}) {
    ScrJobBed bed;
    bed.scr.add(12, 8);
    bed.scr.write("ckpt.12");
    bed.run_well(four_nodes(), [&](JobRank& rank) {
      EXPECT_EQ(restart_from_scr(rank), 12);
      rank.comm.barrier();
      for (int file = 0; is_changed && rank.number() == 0 && file < 8; ++file)
        fs::last_write_time(bed.scr.path(fmt::format("ckpt.12/rank_{}", file)),
                            fs::file_time_type::clock::now());
      rank.comm.barrier();
      EXPECT_TRUE(rank.session->datasets().remove("ckpt.12"));
    });
    EXPECT_EQ(fs::exists(bed.settings.prefix + "/ckpt.12/rank_0"), is_changed);
    bed.settings.on_fetch_fail = OnFetchFail::stop;
    EXPECT_EQ(bed.restart_from_scr(), 0);
    EXPECT_FALSE(bed.logs("cannot be imported")) << bed.log_text();
  }
}

TEST(SessionScrDrop, WhatTheProgramDropsBeforeItIsImportedIsNeverTaken) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 12);
    EXPECT_TRUE(rank.session->datasets().drop("ckpt.6"));
  });
  EXPECT_TRUE(fs::exists(bed.scr.path("ckpt.6/rank_0")));
  fs::remove(bed.settings.prefix + "/ckpt.12/rank_5");
  EXPECT_EQ(bed.restart_from_scr(), 0);
}

TEST(SessionScrDrop, ACheckpointThatIsNotWholeStopsNoRunOnceTheProgramHasDroppedIt) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  fs::remove(bed.settings.prefix + "/ckpt.12/rank_5");
  bed.settings.on_fetch_fail = OnFetchFail::stop;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_FALSE(rank.session->have_restart());
    EXPECT_TRUE(rank.session->datasets().drop("ckpt.12"));
    EXPECT_EQ(restart_from_scr(rank), 6);
  });
}

TEST(SessionScrDrop, WhatTheProgramDeletesBeforeItIsImportedIsGone) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(restart_from_scr(rank), 12);
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.6"));
  });
  EXPECT_FALSE(fs::exists(bed.scr.path("ckpt.6")));
  EXPECT_TRUE(fs::exists(bed.scr.path("ckpt.12/rank_0")));
  fs::remove(bed.settings.prefix + "/ckpt.12/rank_5");
  EXPECT_EQ(bed.restart_from_scr(), 0);
}

TEST(SessionScrDrop, WhatTheProgramDeletesAndIsNotWholeIsDroppedAndItsFilesStay) {
  ScrJobBed bed;
  bed.scr.add(6, 8);
  bed.scr.add(12, 8);
  bed.scr.write("ckpt.12");
  const std::string lost = bed.scr.path("ckpt.6/rank_5");
  fs::rename(lost, lost + ".aside");
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.6"));
    EXPECT_EQ(restart_from_scr(rank), 12);
  });
  EXPECT_TRUE(bed.logs("ckpt.6/rank_5")) << bed.log_text();
  EXPECT_TRUE(fs::exists(bed.scr.path("ckpt.6/rank_0")));
  fs::rename(lost + ".aside", lost);
  fs::remove(bed.settings.prefix + "/ckpt.12/rank_5");
  EXPECT_EQ(bed.restart_from_scr(), 0);
}

TEST(SessionScrDrop, WhatIsNewerThanTheNamedOneIsDroppedWithItWhereThatIsAskedFor) {
  ScrJobBed bed;
  for (const int dataset : {6, 9, 12}) bed.scr.add(static_cast<std::uint64_t>(dataset), 8);
  bed.scr.write("ckpt.12");
  bed.settings.drop_after_current = true;
  bed.run_well(four_nodes(),
               [](JobRank& rank) { EXPECT_TRUE(rank.session->datasets().current("ckpt.6")); });
  EXPECT_EQ(bed.restart_from_scr(), 6);
  EXPECT_TRUE(fs::exists(bed.scr.path("ckpt.9/rank_0")));
}

/// It may have the files of SCR's checkpoint, with other bytes.
TEST(SessionScrDrop, NothingIsImportedBesideADroppedDatasetThatCannotBeReadNow) {
  ScrJobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(18);
    EXPECT_TRUE(rank.session->datasets().drop("ckpt.18"));
    EXPECT_TRUE(rank.session->finalize());
  });
  bed.lose_all_nodes();
  bed.scr.add(6, 8);
  bed.scr.write("ckpt.6");
  const Blob newer = seal(RecordType::dataset, dataset_record_version + 1, {});
  for (const auto& dropped : fs::directory_iterator(bed.scr.path(".cairn/dropped")))
    std::ofstream(dropped.path() / "dataset", std::ios::binary)
        .write(reinterpret_cast<const char*>(newer.data()),
               static_cast<std::streamsize>(newer.size()));
  bed.run_well(four_nodes(), [](JobRank& rank) { EXPECT_FALSE(rank.session->have_restart()); });
  EXPECT_TRUE(bed.logs("whether its files were written again")) << bed.log_text();
}

/// Of a purged dataset only a note is left, and no file of it.
TEST(SessionScrDrop, WhatCairnPurgedHidesNothingThatScrLeft) {
  ScrJobBed bed;
  bed.write_and_finalize({18});
  bed.settings.prefix_purge = true;
  bed.run_well(four_nodes(), [](JobRank& rank) { EXPECT_TRUE(rank.session->finalize()); });
  ASSERT_TRUE(fs::exists(bed.scr.path(".cairn/dropped")));
  bed.settings.prefix_purge = false;
  bed.lose_all_nodes();
  bed.scr.add(6, 8);
  bed.scr.write("ckpt.6");
  EXPECT_EQ(bed.restart_from_scr(), 6);
}

}  // namespace
}  // namespace cairn
