#include "prefix/epoch_folder.hpp"

#include <filesystem>

#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

class EpochFolderTest : public PrefixFixture {
 protected:
  /// The owner has planned the dataset, and does `action`. `hook` sees the operations of all ranks.
  void run_owner(const std::function<void(const EpochFolder&)>& action,
                 const std::function<Status(const FileOperation&)>& hook) {
    run(
        [&](PrefixRank& rank) {
          if (!rank.keeper) return;
          const EpochFolder epoch(*rank.files, folder(), rank.site.epoch);
          pending_ = folder().pending(rank.site.epoch, dataset_);
          plan(epoch);
          action(epoch);
        },
        [&](int, const FileOperation& operation) { return hook(operation); });
  }

  void plan(const EpochFolder& epoch) const {
    ASSERT_TRUE(epoch.begin(dataset_));
    ASSERT_TRUE(epoch.plan(cairn::record_of(dataset_, "job")));
  }

  const DatasetInfo dataset_ = info_of(1);
  std::string pending_;
};

/// The owner renames the record of the plan, and dies before it syncs that. A power failure after
/// the publication would leave a dataset without a record.
TEST_F(EpochFolderTest, APlanIsDurableBeforeAnotherProcessPublishesIt) {
  bool is_planned = false;
  std::vector<std::string> steps;
  run_owner(
      [&](const EpochFolder& epoch) {
        is_planned = true;
        EXPECT_TRUE(epoch.publish_once(dataset_));
      },
      [&](const FileOperation& operation) -> Status {
        if (is_planned && operation.path == pending_) steps.emplace_back(operation.name);
        return {};
      });
  ASSERT_GE(steps.size(), 2U);
  EXPECT_EQ(steps[0], "sync_folder");
  EXPECT_EQ(steps[1], "rename");
}

/// The epoch is still this run's: it is not the whole directory that is gone.
TEST_F(EpochFolderTest, WhatIsMissingInTheEpochIsToldFromAnEpochThatIsMissing) {
  run_owner(
      [&](const EpochFolder& epoch) {
        const auto missing = [&] { return epoch.plan(cairn::record_of(dataset_, "job")); };
        std::filesystem::remove_all(pending_);
        ASSERT_FALSE(missing());
        EXPECT_NE(missing().error().text.find("is missing: it was removed"), std::string::npos)
            << missing().error().text;
        std::filesystem::remove_all(folder().epoch(1));
        EXPECT_NE(missing().error().text.find("does not exist: the file system"), std::string::npos)
            << missing().error().text;
      },
      [](const FileOperation&) -> Status { return {}; });
}

/// A file system in trouble does not say whether the record is there.
TEST_F(EpochFolderTest, APublishedDatasetIsNotMovedAsideWhereItsRecordCannotBeLookedAt) {
  bool is_in_trouble = false;
  run_owner(
      [&](const EpochFolder& epoch) {
        ASSERT_TRUE(epoch.publish_once(dataset_));
        is_in_trouble = true;
        bool is_there = true;
        EXPECT_FALSE(epoch.publish(dataset_, true, EpochFolder::Seen::by_others, is_there));
        is_in_trouble = false;
        EXPECT_TRUE(epoch.is_published(dataset_));
      },
      [&](const FileOperation& operation) -> Status {
        const bool fails = is_in_trouble && operation.name == "info" &&
                           operation.path == DatasetFolder::record(folder().dataset(dataset_));
        return fails ? Status(fail(Code::io, "stale file handle")) : Status{};
      });
}

/// The attempt before could neither put the new version there nor the old one back.
TEST_F(EpochFolderTest, AnOlderVersionThatIsMovedAsideAlreadyIsReplaced) {
  int renames_that_fail = 0;
  run_owner(
      [&](const EpochFolder& epoch) {
        ASSERT_TRUE(epoch.publish_once(dataset_));
        plan(epoch);
        renames_that_fail = 2;
        bool is_there = false;
        EXPECT_FALSE(epoch.publish(dataset_, true, EpochFolder::Seen::by_us_only, is_there));
        EXPECT_TRUE(epoch.publish(dataset_, true, EpochFolder::Seen::by_us_only, is_there));
        EXPECT_TRUE(epoch.is_published(dataset_));
      },
      [&](const FileOperation& operation) -> Status {
        const bool is_to_dataset =
            operation.name == "rename" && operation.to == folder().dataset(dataset_);
        if (!is_to_dataset || renames_that_fail == 0) return {};
        --renames_that_fail;
        return fail(Code::io, "no space");
      });
}

}  // namespace
}  // namespace cairn
