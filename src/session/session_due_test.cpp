// What a run finds in the caches that is to be in the prefix directory, and is not.
#include "session/prefix_cluster.hpp"

namespace cairn {
namespace {

/// Writes datasets, of which none can be copied.
void write_where_nothing_can_be_copied(PrefixCluster& cluster, const std::vector<int>& datasets) {
  cluster.run_well(four_nodes(), [&](JobRank& rank) {
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (!operation.path.starts_with(cluster.settings.prefix)) return {};
      return fail(Code::no_space, "injected: {}", operation.path);
    };
    for (const int dataset : datasets) (void)rank.write(dataset);
    rank.hook = nullptr;
  });
}

/// What is listed once a run has begun.
Names listed_after_init(PrefixCluster& cluster) {
  cluster.run_well(four_nodes(), [](JobRank&) {});
  return cluster.listed();
}

TEST(SessionDue, ACheckpointThatCouldNotBeCopiedIsByTheNextRun) {
  PrefixCluster cluster;
  write_where_nothing_can_be_copied(cluster, {1, 2});
  EXPECT_EQ(cluster.listed(), Names());
  EXPECT_EQ(listed_after_init(cluster), Names({"ckpt.2"}));
  cluster.expect_own_files(2);
}

TEST(SessionDue, OrTheOneThatHasTakenItsPlaceInTheCache) {
  PrefixCluster cluster;
  cluster.write(four_nodes(), {1, 2, 3});
  write_where_nothing_can_be_copied(cluster, {4, 5});
  EXPECT_EQ(cluster.listed(), Names({"ckpt.2"}));
  EXPECT_EQ(listed_after_init(cluster), Names({"ckpt.5", "ckpt.2"}));
  cluster.expect_own_files(5);
}

TEST(SessionDue, WhatIsNotDueYetIsNotCopied) {
  PrefixCluster cluster;
  cluster.write(four_nodes(), {1});
  EXPECT_EQ(listed_after_init(cluster), Names());
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    for (const int dataset : {2, 3}) rank.expect_written(dataset);
  });
  EXPECT_EQ(listed_after_init(cluster), Names({"ckpt.2"}));
}

/// The newest there has a higher number, and is older.
TEST(SessionDue, AfterGoingBackTooItIsCopied) {
  PrefixCluster cluster;
  cluster.settings.flush_interval = 1;
  cluster.write_and_finalize({1, 2, 3});
  cluster.run_well(four_nodes(),
                   [](JobRank& rank) { EXPECT_TRUE(rank.session->current("ckpt.1")); });
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  cluster.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 1);
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (!operation.path.starts_with(cluster.settings.prefix)) return {};
      return fail(Code::no_space, "injected: {}", operation.path);
    };
    (void)rank.write(4);  // the second checkpoint of those that count
    rank.hook = nullptr;
  });
  EXPECT_EQ(listed_after_init(cluster), Names({"ckpt.4", "ckpt.3", "ckpt.2", "ckpt.1"}));
}

/// One that somebody has found damaged there is none.
TEST(SessionDue, ADamagedOneCountsForNothing) {
  PrefixCluster cluster;
  cluster.write(four_nodes(), {1, 2});
  cluster.flip(cluster.file(2, 1));
  cluster.save("cached");
  cluster.lose_all_nodes();
  EXPECT_EQ(cluster.restart(four_nodes()), 0);
  for (const std::string name : {"n0", "n1", "n2", "n3"}) {
    cluster.lose(name);
    std::filesystem::rename(cluster.saved("cached", name), cluster.node(name));
  }
  EXPECT_EQ(listed_after_init(cluster), Names({"ckpt.2"}));
  cluster.lose_all_nodes();
  EXPECT_EQ(cluster.restart(four_nodes()), 2);
}

/// Quarantine hides nothing of that.
TEST(SessionDue, ADamagedOneInQuarantineCountsForNothing) {
  PrefixCluster cluster;
  cluster.write(four_nodes(), {1, 2, 3});
  const auto files = make_posix_files();
  auto keeper =
      Keeper::take_over(*files, *cluster.clock, {cluster.settings.prefix}, {}, Claim::forced);
  ASSERT_TRUE(keeper) << keeper.error().text;
  DatasetRecord record = keeper->listing().at(0);
  EXPECT_EQ(record.info.name, "ckpt.2");
  record.failed_us = 1;
  record.quarantined = true;
  EXPECT_TRUE(keeper->update(record));
  EXPECT_TRUE(keeper->resign());
  EXPECT_EQ(listed_after_init(cluster), Names({"ckpt.3", "ckpt.2"}));
}

TEST(SessionDue, WithFlushOnRestartTheCheckpointIsCopiedWhenTheRunBegins) {
  PrefixCluster cluster;
  cluster.settings.flush_interval = 10;
  cluster.write(four_nodes(), {1});
  EXPECT_EQ(listed_after_init(cluster), Names());
  cluster.settings.flush_on_restart = true;
  EXPECT_EQ(listed_after_init(cluster), Names({"ckpt.1"}));
  cluster.expect_own_files(1);
}

}  // namespace
}  // namespace cairn
