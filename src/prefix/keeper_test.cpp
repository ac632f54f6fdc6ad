#include "prefix/keeper.hpp"

#include <filesystem>

#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

using KeeperTest = PrefixFixture;

TEST_F(KeeperTest, AnUpdateThatCannotBeSyncedIsKeptByTheNext) {
  flush_well(1);
  run(
      [&](PrefixRank& rank) {
        if (!rank.keeper) return;
        DatasetRecord record = rank.keeper->known().listing.front();
        record.failed_us = 5;
        record.failure = "damaged";
        EXPECT_EQ(rank.keeper->update(record).error().code, Code::io);
        record = rank.keeper->known().listing.front();
        record.fetched_us = 7;
        EXPECT_EQ(rank.keeper->update(record).error().code, Code::io);
      },
      [&](int, const FileOperation& operation) -> Status {
        const bool fails =
            operation.name == "sync_folder" && operation.path == folder().dataset(info_of(1));
        return fails ? fail(Code::io, "injected") : Status{};
      });
  const auto files = make_posix_files();
  const auto record = read_dataset_record(*files, folder().dataset(info_of(1)));
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->fetched_us, 7);
  EXPECT_EQ((*record)->failed_us, 5);
}

/// It is the newest one that was published, so the run would go on from it if all went well.
TEST_F(KeeperTest, ACheckpointThatCannotBecomeCurrentYetIsTheOneToRestartFrom) {
  flush_well(1);
  run(
      [&](PrefixRank& rank) {
        (void)flush_dataset(rank, 2);
        if (!rank.keeper) return;
        ASSERT_EQ(rank.keeper->known().listing.size(), 2U) << "it is published";
        EXPECT_EQ(rank.keeper->known().current(), "ckpt.2");
      },
      [&](int, const FileOperation& operation) -> Status {
        const bool fails = operation.name == "rename" && operation.to == folder().current();
        return fails ? fail(Code::io, "injected") : Status{};
      });
  const auto files = make_posix_files();
  EXPECT_EQ(read_current(*files, folder()), "ckpt.1");
  std::vector<std::string> damaged;
  const auto listing = read_listing(*files, folder(), damaged);
  ASSERT_TRUE(listing);
  EXPECT_EQ(current_in(*listing, "ckpt.1"), "ckpt.2") << "as a command sees it";
  run_well([](PrefixRank&) {});
  EXPECT_EQ(read_current(*files, folder()), "ckpt.2");
}

TEST_F(KeeperTest, AnOlderCheckpointStaysCurrentIfAUserChoseIt) {
  flush_well(1);
  flush_well(2);
  run_well([&](PrefixRank& rank) {
    if (!rank.keeper) return;
    EXPECT_TRUE(rank.keeper->set_current("ckpt.1"));
    EXPECT_EQ(rank.keeper->known().current(), "ckpt.1");
  });
}

/// As where a file system is not mounted now. Another run has used the mount point, and had an
/// epoch of the same number.
TEST_F(KeeperTest, ASignOfLifeDoesNotTakeOverTheDirectoryThatIsAtItsPathForNow) {
  run_well([&](PrefixRank& rank) {
    if (!rank.keeper) return;
    OwnerRecord other = read_owner(*rank.files, folder())->value();
    other.run.chance ^= 1;
    ASSERT_TRUE(write_file_atomically(*rank.files, folder().owner(), encode(other), false));
    rank.keeper->heartbeat()();
    EXPECT_EQ(read_owner(*rank.files, folder())->value(), other);
  });
}

/// Else the next owner would read the old one.
TEST_F(KeeperTest, TheListingIsRemovedThoughAnotherDirectoryWasAtItsPathAtTheFirstTry) {
  namespace fs = std::filesystem;
  flush_well(1);
  run_well([&](PrefixRank& rank) {
    if (!rank.keeper) return;
    ASSERT_TRUE(fs::exists(folder().listing()));
    const std::string aside = folder().prefix + "/aside";
    fs::rename(folder().root(), aside);
    fs::create_directory(folder().root());
    EXPECT_FALSE(rank.keeper->drop(info_of(1)));
    fs::remove_all(folder().root());
    fs::rename(aside, folder().root());
    EXPECT_TRUE(rank.keeper->drop(info_of(1)));
    EXPECT_FALSE(fs::exists(folder().listing()));
  });
}

}  // namespace
}  // namespace cairn
