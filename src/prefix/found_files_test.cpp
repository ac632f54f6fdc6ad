// Datasets of files that were there: who answers for what, and what is refused.
#include "prefix/found_files.hpp"

#include "prefix/check.hpp"
#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

class FoundFiles : public PrefixFixture {
 protected:
  FoundFiles() {
    fs::create_directories(prefix() + "/old");
    for (int rank = 0; rank < ranks; ++rank)
      std::ofstream(prefix() + "/" + own(rank)) << content_of(1, rank, 1);
    std::ofstream(prefix() + "/old/all") << std::string(50'000, 's');
  }
  static std::string own(int rank) { return fmt::format("old/r{}", rank); }

  static FoundDataset all_files() {
    FoundDataset found;
    found.record.info = info_of(1);
    found.record.info.flags |= flag_in_place;
    for (int rank = 0; rank < ranks; ++rank) found.files.push_back({own(rank), "old/all"});
    found.node = "n0";
    found.block_bytes = 4096;
    return found;
  }

  /// The error; empty if it was published.
  std::string publish(const FoundDataset& found, const RankHook& hook = nullptr) {
    std::string trouble;
    run(
        [&](PrefixRank& rank) {
          const auto published = publish_found(rank.comm, rank.site, found);
          if (!published) trouble = published.error().text;
        },
        hook, 1);
    return trouble;
  }

  /// What a run of as many ranks says to it; "not there" if there is none.
  std::string check() {
    std::string trouble = "not there";
    run_well([&](PrefixRank& rank) {
      std::vector<std::string> damaged;
      const Listing listing = *read_listing(*rank.files, folder(), damaged);
      for (const DatasetRecord& record : listing) {
        const auto checked = check_in_place(rank.comm, rank.site, record);
        if (rank.comm.rank() == 0) trouble = checked ? "" : checked.error().text;
      }
    });
    return trouble;
  }
};

TEST_F(FoundFiles, AreADatasetWhoseEveryByteIsChecked) {
  ASSERT_EQ(publish(all_files()), "");
  EXPECT_EQ(check(), "");
  const auto files = make_posix_files();
  std::vector<std::string> damaged;
  const Listing listing = *read_listing(*files, folder(), damaged);
  ASSERT_EQ(listing.size(), 1U);
  EXPECT_EQ(listing[0].files, ranks + 1U);
  EXPECT_TRUE(listing[0].settled);
  EXPECT_EQ(*read_current(*files, folder()), "ckpt.1");
  for (const std::string& name : {own(2), std::string("old/all")}) {
    const std::string path = prefix() + "/" + name;
    const std::string was = read_all(path);
    std::fstream(path, std::ios::in | std::ios::out).seekp(3000).put('~');
    EXPECT_NE(check().find(name), std::string::npos);
    std::ofstream(path) << was;
  }
}

TEST_F(FoundFiles, MoreRanksThanFitInOneManifest) {
  FoundDataset found = all_files();
  found.files.assign(ranks_per_manifest * 2 + 1, {"old/all"});
  found.record.info.ranks = static_cast<std::uint32_t>(found.files.size());
  ASSERT_EQ(publish(found), "");
  const auto files = make_posix_files();
  std::vector<std::string> damaged;
  const DatasetRecord record = read_listing(*files, folder(), damaged)->front();
  const auto background = make_foreground();
  const auto account = check_dataset(*files, {*background, 1}, folder(),
                                     folder().dataset(record.info), record, CheckDepth::blocks);
  ASSERT_TRUE(account);
  EXPECT_EQ(account->troubles, std::vector<std::string>());
  EXPECT_EQ(account->bytes, 50'000U);
  EXPECT_EQ(account->files, 1U);
}

TEST_F(FoundFiles, WhatCannotBeAnsweredForIsRefusedAndLeavesNothing) {
  const auto refused = [&](const std::string& name) {
    FoundDataset found = all_files();
    found.files[1].push_back(name);
    return publish(found);
  };
  fs::create_symlink(prefix() + "/old/all", prefix() + "/link");
  EXPECT_NE(refused("link").find("not a regular file"), std::string::npos);
  fs::create_directory_symlink(prefix() + "/old", prefix() + "/way");
  EXPECT_NE(refused("way/all").find("way is a link"), std::string::npos);
  EXPECT_NE(refused(".cairn/owner").find("Cairn's own files"), std::string::npos);
  EXPECT_NE(refused("old").find("not a regular file"), std::string::npos);
  EXPECT_NE(refused("gone").find("gone"), std::string::npos);
  EXPECT_NE(refused("old/all").find("twice"), std::string::npos);
  EXPECT_NE(refused("../x").find("not the name of a file"), std::string::npos);
  EXPECT_EQ(check(), "not there");
}

TEST_F(FoundFiles, AFileThatIsStillWrittenToIsRefused) {
  const std::string trouble =
      publish(all_files(), [&](int, const FileOperation& operation) -> Status {
        if (operation.name == "sync_all" && operation.path.ends_with("old/r1"))
          std::ofstream(std::string(operation.path), std::ios::app) << "more";
        return {};
      });
  EXPECT_NE(trouble.find("old/r1"), std::string::npos) << trouble;
  EXPECT_EQ(check(), "not there");
}

/// At every call in the prefix directory: afterwards it is there, whole, or it is not.
TEST_F(FoundFiles, ACrashLeavesAWholeDatasetOrNone) {
  bool was_there = false;
  for (std::uint64_t step = 0;; ++step) {
    fs::remove_all(prefix() + "/.cairn");
    bool crashed = false;
    try {
      publish(all_files(), [&](int, const FileOperation& operation) -> Status {
        if (operation.index < step || !operation.path.starts_with(prefix())) return {};
        crashed = true;
        throw Crash{};
      });
    } catch (const Crash&) {
    }
    const std::string found = check();
    EXPECT_TRUE(found.empty() || found == "not there") << step << ": " << found;
    EXPECT_EQ(names_of_cairn(), std::vector<std::string>());
    EXPECT_EQ(read_all(prefix() + "/old/all").size(), 50'000U);
    was_there = found.empty();
    if (!crashed) break;
  }
  EXPECT_TRUE(was_there);
}

TEST_F(FoundFiles, TheNewestDatasetOwnsAName) {
  ASSERT_EQ(publish(all_files()), "");
  FoundDataset newer = all_files();
  newer.record.info = info_of(2);
  newer.record.info.flags |= flag_in_place;
  newer.files = {{own(0)}, {}, {}};
  ASSERT_EQ(publish(newer), "");
  const auto files = make_posix_files();
  std::vector<std::string> damaged;
  const auto owners = owners_of_files(*files, folder(), *read_listing(*files, folder(), damaged));
  ASSERT_TRUE(owners);
  EXPECT_EQ(owners->at(own(0)).name, "ckpt.2");
  EXPECT_EQ(owners->at(own(1)).name, "ckpt.1");
  EXPECT_EQ(owners->size(), ranks + 1U);
}

}  // namespace
}  // namespace cairn
