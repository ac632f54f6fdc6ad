#include "prefix/epoch_folder.hpp"

#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

using EpochFolderTest = PrefixFixture;

/// The owner renames the record of the plan, and dies before it syncs that. A power failure after
/// the publication would leave a dataset without a record.
TEST_F(EpochFolderTest, APlanIsDurableBeforeAnotherProcessPublishesIt) {
  const DatasetInfo dataset = info_of(1);
  std::vector<std::string> steps;
  std::string pending;
  run(
      [&](PrefixRank& rank) {
        if (!rank.keeper) return;
        const EpochFolder epoch(rank.files, folder(), rank.site.epoch);
        ASSERT_TRUE(epoch.begin(dataset));
        ASSERT_TRUE(epoch.plan(cairn::record_of(dataset, "job")));
        pending = folder().pending(rank.site.epoch, dataset);
        EXPECT_TRUE(epoch.publish_once(dataset));
      },
      [&](int, const FileOperation& operation) -> Status {
        if (pending.empty() || operation.path != pending) return {};
        steps.push_back(std::string(operation.name));
        return {};
      });
  ASSERT_GE(steps.size(), 2U);
  EXPECT_EQ(steps[0], "sync_folder");
  EXPECT_EQ(steps[1], "rename");
}

/// Several processes may find that all parts are done.
TEST_F(EpochFolderTest, ADatasetThatIsPublishedAlreadyIsPublishedOnce) {
  const DatasetInfo dataset = info_of(1);
  run([&](PrefixRank& rank) {
    if (!rank.keeper) return;
    const EpochFolder epoch(rank.files, folder(), rank.site.epoch);
    ASSERT_TRUE(epoch.begin(dataset));
    ASSERT_TRUE(epoch.plan(cairn::record_of(dataset, "job")));
    EXPECT_TRUE(epoch.publish_once(dataset));
    EXPECT_TRUE(epoch.publish_once(dataset));
    EXPECT_TRUE(epoch.is_published(dataset));
  });
}

/// A file system in trouble does not say whether the record is there.
TEST_F(EpochFolderTest, APublishedDatasetIsNotMovedAsideWhereItsRecordCannotBeLookedAt) {
  const DatasetInfo dataset = info_of(1);
  bool is_in_trouble = false;
  run(
      [&](PrefixRank& rank) {
        if (!rank.keeper) return;
        const EpochFolder epoch(rank.files, folder(), rank.site.epoch);
        ASSERT_TRUE(epoch.begin(dataset));
        ASSERT_TRUE(epoch.plan(cairn::record_of(dataset, "job")));
        ASSERT_TRUE(epoch.publish_once(dataset));
        is_in_trouble = true;
        bool is_there = true;
        EXPECT_FALSE(epoch.publish(dataset, true, EpochFolder::Seen::by_others, is_there));
        is_in_trouble = false;
        EXPECT_TRUE(epoch.is_published(dataset));
      },
      [&](int, const FileOperation& operation) -> Status {
        const bool fails = is_in_trouble && operation.name == "info" &&
                           operation.path == PrefixFolder::record(folder().dataset(dataset));
        return fails ? Status(fail(Code::io, "stale file handle")) : Status{};
      });
}

/// The attempt before could neither put the new version there nor the old one back.
TEST_F(EpochFolderTest, AnOlderVersionThatIsMovedAsideAlreadyIsReplaced) {
  const DatasetInfo dataset = info_of(1);
  int renames_that_fail = 0;
  run(
      [&](PrefixRank& rank) {
        if (!rank.keeper) return;
        const EpochFolder epoch(rank.files, folder(), rank.site.epoch);
        for (int version = 0; version < 2; ++version) {
          ASSERT_TRUE(epoch.begin(dataset));
          ASSERT_TRUE(epoch.plan(cairn::record_of(dataset, "job")));
          if (version == 1) break;
          ASSERT_TRUE(epoch.publish_once(dataset));
        }
        renames_that_fail = 2;
        bool is_there = false;
        EXPECT_FALSE(epoch.publish(dataset, true, EpochFolder::Seen::by_us_only, is_there));
        EXPECT_TRUE(epoch.publish(dataset, true, EpochFolder::Seen::by_us_only, is_there));
        EXPECT_TRUE(epoch.is_published(dataset));
      },
      [&](int, const FileOperation& operation) -> Status {
        const bool is_to_dataset =
            operation.name == "rename" && operation.to == folder().dataset(dataset);
        if (!is_to_dataset || renames_that_fail == 0) return {};
        --renames_that_fail;
        return fail(Code::io, "no space");
      });
}

}  // namespace
}  // namespace cairn
