// Which checkpoint the user and the program name: SCR_CURRENT and SCR_Current.

#include "support/job_bed.hpp"

namespace cairn {
namespace {

TEST(SessionCurrent, TheOneNamedIsFetchedFirst) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 1;
  bed.write_and_finalize({1, 2, 3});
  bed.lose_all_nodes();
  bed.settings.current = "ckpt.2";
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  bed.lose_all_nodes();
  bed.settings.current.clear();
  EXPECT_EQ(bed.restart(four_nodes()), 3);
  bed.run_well(four_nodes(),
               [](JobRank& rank) { EXPECT_TRUE(rank.session->datasets().current("ckpt.1")); });
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionCurrent, WhatIsNoCheckpointIsPassedOverAndThatIsReported) {
  PrefixJobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2, flag_output);
    EXPECT_TRUE(rank.session->finalize());
  });
  bed.lose_all_nodes();
  bed.settings.current = "ckpt.2";
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  EXPECT_TRUE(bed.logs("SCR_CURRENT=ckpt.2 is ignored: dataset 2 (ckpt.2) is not a checkpoint"))
      << bed.log_text();
}

TEST(SessionCurrent, TheCachesGiveUpWhatIsNewerThanTheOneNamed) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 1;
  bed.write_and_finalize({1, 2, 3});
  ASSERT_TRUE(bed.parts("n0", 1).empty()) << "only the prefix directory has it";
  bed.run_well(four_nodes(),
               [](JobRank& rank) { EXPECT_TRUE(rank.session->datasets().current("ckpt.1")); });
  EXPECT_TRUE(bed.parts("n0").empty());
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

/// Which stays, as all outputs do.
TEST(SessionCurrent, ANewerCheckpointThatIsAnOutputIsNotOfferedBeforeTheOneNamed) {
  PrefixJobBed bed;
  bed.settings.stores[0].count = 2;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2, flag_checkpoint | flag_output);
  });
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_TRUE(rank.session->datasets().current("ckpt.1"));
    EXPECT_EQ(rank.restart(), 1);
  });
  EXPECT_EQ(bed.parts("n0", 2).size(), 2U);
}

TEST(SessionCurrent, CheckpointsCountOnFromTheOneNamed) {
  PrefixJobBed bed;
  bed.write_and_finalize({1, 2, 3});  // 2 is the second, and 3 at the end
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_TRUE(rank.session->datasets().current("ckpt.2"));
    rank.expect_written(4);  // the third
    rank.comm.barrier();
    EXPECT_EQ(bed.listed(), Names({"ckpt.3", "ckpt.2"}));
    rank.comm.barrier();
    rank.expect_written(5);
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.5", "ckpt.3", "ckpt.2"}));
}

/// The name of one in the caches is also that of an older one in the prefix directory.
TEST(SessionCurrent, TheNewestOfTheNameIsTheOneNamed) {
  PrefixJobBed bed;
  bed.settings.stores[0].count = 2;
  const auto write = [](JobRank& rank, int files, const std::string& name) {
    ASSERT_TRUE(rank.session->start_output(name, flag_checkpoint));
    EXPECT_TRUE(rank.write_files(files));
    EXPECT_TRUE(rank.session->complete_output(true));
  };
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    write(rank, 1, "other.1");
    write(rank, 2, "same.2");
    write(rank, 3, "same.2");
    write(rank, 4, "other.4");
    EXPECT_TRUE(rank.session->datasets().drop("other.4"));
    EXPECT_TRUE(rank.session->datasets().current("same.2"));
  });
  EXPECT_EQ(bed.listed(), Names({"same.2"}));
  EXPECT_EQ(bed.parts("n0", 3).size(), 2U);
  EXPECT_TRUE(bed.parts("n0", 4).empty());
}

TEST(SessionCurrent, NewerCheckpointsThanTheCurrentOneAreDroppedIfAsked) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 1;
  bed.write_and_finalize({1, 2, 3});
  const auto choose_second = [](JobRank& rank) {
    EXPECT_TRUE(rank.session->datasets().current("ckpt.2"));
    EXPECT_TRUE(rank.session->finalize());
  };
  bed.run_well(four_nodes(), choose_second);
  EXPECT_EQ(bed.listed(), Names({"ckpt.3", "ckpt.2", "ckpt.1"}));
  bed.settings.drop_after_current = true;
  bed.run_well(four_nodes(), choose_second);
  EXPECT_EQ(bed.listed(), Names({"ckpt.2", "ckpt.1"}));
  bed.expect_own_files(3);
  bed.lose_all_nodes();
  bed.settings.current = "ckpt.3";  // which is not listed any more
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

TEST(SessionCurrent, ItIsNotIgnoredForWhatTheCachesHaveInQuarantine) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 1;
  bed.settings.stores[0].count = 2;
  bed.settings.restart_attempts = 1;
  bed.write_and_finalize({1, 2});
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
    EXPECT_TRUE(rank.session->start_restart());
  });
  bed.settings.current = "ckpt.1";
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  EXPECT_FALSE(bed.logs("is ignored")) << bed.log_text();
}

/// The newer one is an output, so SCR_Current leaves it, and the store keeps one checkpoint less
/// than before.
TEST(SessionCurrent, WhatTheProgramWentBackToStaysUntilTheNextOneIsComplete) {
  PrefixJobBed bed;
  bed.settings.stores[0].count = 2;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2, flag_checkpoint | flag_output);
    EXPECT_TRUE(rank.session->finalize());
  });
  bed.settings.stores[0].count = 1;
  bed.run(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    EXPECT_TRUE(rank.session->datasets().current("ckpt.1"));
    EXPECT_EQ(rank.restart(), 1);
    ASSERT_TRUE(rank.session->start_output("ckpt.3", flag_checkpoint));
    rank.comm.barrier();
    throw Crash{};
  });
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_TRUE(rank.session->datasets().current("ckpt.1"));
    EXPECT_EQ(rank.restart(), 1);
  });
}

TEST(SessionCurrent, WhatThePrefixDirectoryHasMakesRoomAtStart) {
  PrefixJobBed bed;
  bed.settings.stores[0].count = 1;
  bed.settings.flush_interval = 1;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset, flag_checkpoint | flag_output);
    EXPECT_TRUE(rank.session->finalize());
  });
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_TRUE(rank.session->datasets().current("ckpt.1"));
    EXPECT_EQ(rank.restart(), 1) << "from the prefix directory";
    ASSERT_TRUE(rank.session->start_output("ckpt.3", flag_checkpoint));
    rank.comm.barrier();
    EXPECT_TRUE(bed.parts(rank.settings.node_name, 1).empty()) << "three of them have no room";
  });
}

}  // namespace
}  // namespace cairn
