// What a run finds in the caches that is to be in the prefix directory, and is not.
#include "support/job_bed.hpp"

namespace cairn {
namespace {

/// Writes datasets, of which none can be copied.
void write_where_nothing_can_be_copied(PrefixJobBed& bed, const std::vector<int>& datasets) {
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (!operation.path.starts_with(bed.settings.prefix)) return {};
      return fail(Code::no_space, "injected: {}", operation.path);
    };
    for (const int dataset : datasets) (void)rank.write(dataset);
    rank.hook = nullptr;
  });
}

/// What is listed once a run has begun.
Names listed_after_init(PrefixJobBed& bed) {
  bed.run_well(four_nodes(), [](JobRank&) {});
  return bed.listed();
}

TEST(SessionDue, ACheckpointThatCouldNotBeCopiedIsByTheNextRun) {
  PrefixJobBed bed;
  write_where_nothing_can_be_copied(bed, {1, 2});
  EXPECT_EQ(bed.listed(), Names());
  EXPECT_EQ(listed_after_init(bed), Names({"ckpt.2"}));
  bed.expect_own_files(2);
}

TEST(SessionDue, OrTheOneThatHasTakenItsPlaceInTheCache) {
  PrefixJobBed bed;
  bed.write(four_nodes(), {1, 2, 3});
  write_where_nothing_can_be_copied(bed, {4, 5});
  EXPECT_EQ(bed.listed(), Names({"ckpt.2"}));
  EXPECT_EQ(listed_after_init(bed), Names({"ckpt.5", "ckpt.2"}));
  bed.expect_own_files(5);
}

TEST(SessionDue, WhatIsNotDueYetIsNotCopied) {
  PrefixJobBed bed;
  bed.write(four_nodes(), {1});
  EXPECT_EQ(listed_after_init(bed), Names());
  bed.run_well(four_nodes(), [](JobRank& rank) {
    for (const int dataset : {2, 3}) rank.expect_written(dataset);
  });
  EXPECT_EQ(listed_after_init(bed), Names({"ckpt.2"}));
}

/// The newest there has a higher number, and is older.
TEST(SessionDue, AfterGoingBackTooItIsCopied) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 1;
  bed.write_and_finalize({1, 2, 3});
  bed.run_well(four_nodes(),
               [](JobRank& rank) { EXPECT_TRUE(rank.session->datasets().current("ckpt.1")); });
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 1);
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (!operation.path.starts_with(bed.settings.prefix)) return {};
      return fail(Code::no_space, "injected: {}", operation.path);
    };
    (void)rank.write(4);  // the second checkpoint of those that count
    rank.hook = nullptr;
  });
  EXPECT_EQ(listed_after_init(bed), Names({"ckpt.4", "ckpt.3", "ckpt.2", "ckpt.1"}));
}

/// One that was found damaged there is none.
TEST(SessionDue, ADamagedOneCountsForNothing) {
  PrefixJobBed bed;
  bed.write(four_nodes(), {1, 2});
  flip_bit(bed.file(2, 1));
  bed.save("cached");
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 0);
  for (const std::string name : {"n0", "n1", "n2", "n3"}) {
    bed.lose(name);
    std::filesystem::rename(bed.saved("cached", name), bed.node(name));
  }
  EXPECT_EQ(listed_after_init(bed), Names({"ckpt.2"}));
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

/// Quarantine hides nothing of that.
TEST(SessionDue, ADamagedOneInQuarantineCountsForNothing) {
  PrefixJobBed bed;
  bed.write(four_nodes(), {1, 2, 3});
  const auto files = make_posix_files();
  auto keeper = Keeper::take_over(*files, *bed.clock, {bed.settings.prefix}, {}, Claim::forced);
  ASSERT_TRUE(keeper) << keeper.error().text;
  DatasetRecord record = keeper->known().listing.at(0);
  EXPECT_EQ(record.info.name, "ckpt.2");
  record.failed_us = 1;
  record.quarantined = true;
  EXPECT_TRUE(keeper->update(record));
  EXPECT_TRUE(keeper->resign());
  EXPECT_EQ(listed_after_init(bed), Names({"ckpt.3", "ckpt.2"}));
}

TEST(SessionDue, WithFlushOnRestartTheCheckpointIsCopiedWhenTheRunBegins) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 10;
  bed.write(four_nodes(), {1});
  EXPECT_EQ(listed_after_init(bed), Names());
  bed.settings.flush_on_restart = true;
  EXPECT_EQ(listed_after_init(bed), Names({"ckpt.1"}));
  bed.expect_own_files(1);
}

}  // namespace
}  // namespace cairn
