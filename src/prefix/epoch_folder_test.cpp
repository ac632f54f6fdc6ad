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

}  // namespace
}  // namespace cairn
