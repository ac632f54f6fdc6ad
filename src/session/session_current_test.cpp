// Which checkpoint the user and the program name: SCR_CURRENT and SCR_Current.

#include "session/prefix_cluster.hpp"

namespace cairn {
namespace {

TEST(SessionCurrent, TheOneNamedIsFetchedFirst) {
  PrefixCluster cluster;
  cluster.settings.flush_interval = 1;
  cluster.write_and_finalize({1, 2, 3});
  cluster.lose_all_nodes();
  cluster.settings.current = "ckpt.2";
  EXPECT_EQ(cluster.restart(four_nodes()), 2);
  cluster.lose_all_nodes();
  cluster.settings.current.clear();
  EXPECT_EQ(cluster.restart(four_nodes()), 3);
  cluster.run_well(four_nodes(),
                   [](JobRank& rank) { EXPECT_TRUE(rank.session->current("ckpt.1")); });
  cluster.lose_all_nodes();
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

TEST(SessionCurrent, WhatIsNoCheckpointIsPassedOverAndThatIsTold) {
  PrefixCluster cluster;
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2, flag_output);
    EXPECT_TRUE(rank.session->finalize());
  });
  cluster.lose_all_nodes();
  cluster.settings.current = "ckpt.2";
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  EXPECT_TRUE(cluster.said("SCR_CURRENT=ckpt.2 is ignored: dataset 2 (ckpt.2) is not a checkpoint"))
      << cluster.said();
}

TEST(SessionCurrent, TheCachesGiveUpWhatIsNewerThanTheOneNamed) {
  PrefixCluster cluster;
  cluster.settings.flush_interval = 1;
  cluster.write_and_finalize({1, 2, 3});
  ASSERT_TRUE(cluster.parts("n0", 1).empty()) << "only the prefix directory has it";
  cluster.run_well(four_nodes(),
                   [](JobRank& rank) { EXPECT_TRUE(rank.session->current("ckpt.1")); });
  EXPECT_TRUE(cluster.parts("n0").empty());
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

/// Which stays, as all outputs do.
TEST(SessionCurrent, ANewerCheckpointThatIsAnOutputIsNotOfferedBeforeTheOneNamed) {
  PrefixCluster cluster;
  cluster.settings.stores[0].count = 2;
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2, flag_checkpoint | flag_output);
  });
  EXPECT_EQ(cluster.restart(four_nodes()), 2);
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_TRUE(rank.session->current("ckpt.1"));
    EXPECT_EQ(rank.restart(), 1);
  });
  EXPECT_EQ(cluster.parts("n0", 2).size(), 2U);
}

TEST(SessionCurrent, CheckpointsCountOnFromTheOneNamed) {
  PrefixCluster cluster;
  cluster.write_and_finalize({1, 2, 3});  // 2 is the second, and 3 at the end
  cluster.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_TRUE(rank.session->current("ckpt.2"));
    rank.expect_written(4);  // the third
    rank.comm.barrier();
    EXPECT_EQ(cluster.listed(), Names({"ckpt.3", "ckpt.2"}));
    rank.comm.barrier();
    rank.expect_written(5);
  });
  EXPECT_EQ(cluster.listed(), Names({"ckpt.5", "ckpt.3", "ckpt.2"}));
}

/// The name of one in the caches is also that of an older one in the prefix directory.
TEST(SessionCurrent, TheNewestOfTheNameIsTheOneNamed) {
  PrefixCluster cluster;
  cluster.settings.stores[0].count = 2;
  const auto write = [](JobRank& rank, int files, const std::string& name) {
    ASSERT_TRUE(rank.session->start_output(name, flag_checkpoint));
    EXPECT_TRUE(rank.write_files(files));
    EXPECT_TRUE(rank.session->complete_output(true));
  };
  cluster.run_well(four_nodes(), [&](JobRank& rank) {
    write(rank, 1, "other.1");
    write(rank, 2, "same.2");
    write(rank, 3, "same.2");
    write(rank, 4, "other.4");
    EXPECT_TRUE(rank.session->drop("other.4"));
    EXPECT_TRUE(rank.session->current("same.2"));
  });
  EXPECT_EQ(cluster.listed(), Names({"same.2"}));
  EXPECT_EQ(cluster.parts("n0", 3).size(), 2U);
  EXPECT_TRUE(cluster.parts("n0", 4).empty());
}

TEST(SessionCurrent, NewerCheckpointsThanTheCurrentOneAreDroppedIfAsked) {
  PrefixCluster cluster;
  cluster.settings.flush_interval = 1;
  cluster.write_and_finalize({1, 2, 3});
  const auto choose_second = [](JobRank& rank) {
    EXPECT_TRUE(rank.session->current("ckpt.2"));
    EXPECT_TRUE(rank.session->finalize());
  };
  cluster.run_well(four_nodes(), choose_second);
  EXPECT_EQ(cluster.listed(), Names({"ckpt.3", "ckpt.2", "ckpt.1"}));
  cluster.settings.drop_after_current = true;
  cluster.run_well(four_nodes(), choose_second);
  EXPECT_EQ(cluster.listed(), Names({"ckpt.2", "ckpt.1"}));
  cluster.expect_own_files(3);
  cluster.lose_all_nodes();
  cluster.settings.current = "ckpt.3";  // which is not listed any more
  EXPECT_EQ(cluster.restart(four_nodes()), 2);
}

TEST(SessionCurrent, ItIsNotIgnoredForWhatTheCachesHaveInQuarantine) {
  PrefixCluster cluster;
  cluster.settings.flush_interval = 1;
  cluster.settings.stores[0].count = 2;
  cluster.settings.restart_attempts = 1;
  cluster.write_and_finalize({1, 2});
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
    EXPECT_TRUE(rank.session->start_restart());
  });
  cluster.settings.current = "ckpt.1";
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  EXPECT_FALSE(cluster.said("is ignored")) << cluster.said();
}

}  // namespace
}  // namespace cairn
