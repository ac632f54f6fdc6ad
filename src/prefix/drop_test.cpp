// Datasets that are dropped and put back, and what is left of them by a crash.
#include "prefix/check.hpp"
#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

class Drop : public PrefixFixture {
 protected:
  Result<Keeper> own(Files& files) { return Keeper::take_over(files, *clock_, folder(), owner()); }
  bool is_listed() {
    std::vector<std::string> damaged;
    return !read_listing(*files_, folder(), damaged)->empty();
  }
  std::optional<DatasetRecord> find_dropped() {
    const Listing dropped = read_dropped(*files_, folder())->listing;
    return dropped.empty() ? std::nullopt : std::optional(dropped[0]);
  }
  /// Stops before every operation in turn, lets the next owner tidy up, then looks.
  void crash_at_every_step(const std::function<void(Keeper&)>& action,
                           const std::function<void(std::uint64_t step)>& prepare) {
    bool crashed = true;
    for (std::uint64_t step = 0; crashed; ++step) {
      prepare(step);
      crashed = false;
      std::uint64_t count = 0;
      bool armed = false;
      const auto files = make_hooked_files(*files_, [&](const FileOperation&) -> Status {
        if (!armed || count++ != step) return {};
        crashed = true;
        throw Crash{};
      });
      try {
        auto keeper = own(*files);
        ASSERT_TRUE(keeper);
        armed = true;
        action(*keeper);
      } catch (const Crash&) {
      }
      run_well([](PrefixRank&) {});
      ASSERT_NE(is_listed(), find_dropped().has_value()) << "neither or both at step " << step;
      ASSERT_EQ(names_of_cairn(), std::vector<std::string>{}) << step;
    }
  }
  void drop_well() {
    auto keeper = own(*files_);
    ASSERT_TRUE(keeper && keeper->drop(info_of(1)) && keeper->resign());
  }

  std::unique_ptr<Files> files_ = make_posix_files();
  std::unique_ptr<Clock> clock_ = make_system_clock();
};

TEST_F(Drop, ADroppedOneKeepsItsFilesAndIsPutBackWhole) {
  flush_well(1);
  drop_well();
  EXPECT_EQ(fetch_again(1), "not listed");
  EXPECT_TRUE(fs::exists(prefix() + "/ckpt/r0/f1"));
  const auto record = find_dropped();
  ASSERT_TRUE(record);
  EXPECT_EQ(record->info, info_of(1));
  auto keeper = own(*files_);
  ASSERT_TRUE(keeper && keeper->put_back(*record));
  EXPECT_FALSE(keeper->put_back(*record)) << "it is there already";
  EXPECT_EQ(keeper->known().listing.size(), 1U);
  EXPECT_FALSE(find_dropped());
  EXPECT_EQ(fetch_again(1), "");
}

TEST_F(Drop, ADroppedOneCanBeDeletedWithItsFiles) {
  flush_well(1);
  drop_well();
  run_well([&](PrefixRank& rank) {
    ASSERT_TRUE(on_keeper(rank.comm, rank.site,
                          [](Keeper& keeper) { return keeper.take_out(info_of(1)); }));
    ASSERT_TRUE(remove_files(rank.comm, rank.site, info_of(1), ranks_per_manifest));
  });
  EXPECT_FALSE(find_dropped());
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt/r1"));
}

TEST_F(Drop, FlushedAgainAndDroppedAgainItIsThereOnce) {
  flush_well(1);
  drop_well();
  flush_well(1);
  drop_well();
  EXPECT_TRUE(find_dropped());
  EXPECT_FALSE(is_listed());
}

TEST_F(Drop, WhatIsDroppedIsNotCurrentAnyMore) {
  flush_well(1);
  auto keeper = own(*files_);
  ASSERT_TRUE(keeper && keeper->set_current("ckpt.1"));
  ASSERT_TRUE(keeper->drop(info_of(1)));
  EXPECT_EQ(keeper->known().current(), "");
  EXPECT_EQ(*read_current(*files_, folder()), "");
}

TEST_F(Drop, CrashAtEveryStepOfADropLosesNothing) {
  crash_at_every_step([](Keeper& keeper) { (void)keeper.drop(info_of(1)); },
                      [&](std::uint64_t) {
                        fs::remove_all(prefix());
                        fs::create_directories(prefix());
                        flush_well(1);
                      });
  EXPECT_TRUE(find_dropped()) << "in the end it is dropped";
}

TEST_F(Drop, CrashAtEveryStepOfPuttingBackLosesNothing) {
  crash_at_every_step([&](Keeper& keeper) { (void)keeper.put_back(*find_dropped()); },
                      [&](std::uint64_t) {
                        fs::remove_all(prefix());
                        fs::create_directories(prefix());
                        flush_well(1);
                        drop_well();
                      });
  EXPECT_EQ(fetch_again(1), "") << "in the end it is there";
}

TEST_F(Drop, DoesNotWaitForAnOwnerThatIsKnownToBeDead) {
  SleepersClock clock;
  auto dead = Keeper::take_over(*files_, clock, folder(), owner("a"));
  ASSERT_TRUE(dead);
  clock.meanwhile = [] { FAIL() << "slept"; };
  const auto next = Keeper::take_over(*files_, clock, folder(), owner("b"), Claim::forced);
  ASSERT_TRUE(next) << next.error().text;
  EXPECT_EQ(dead->set_current("x").error().code, Code::busy);
  std::ofstream(folder().owner(), std::ios::binary) << [] {
    const Blob newer = seal(RecordType::owner, owner_record_version + 1, {});
    return std::string(reinterpret_cast<const char*>(newer.data()), newer.size());
  }();
  const auto refused = Keeper::take_over(*files_, clock, folder(), owner("c"), Claim::forced);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::newer_format);
}

TEST_F(Drop, ACheckNamesEveryFileThatIsNotWhatItWas) {
  flush_well(1);
  std::vector<std::string> damaged;
  const DatasetRecord record = (*read_listing(*files_, folder(), damaged))[0];
  const auto background = make_background_thread();
  const auto check = [&](CheckDepth depth) {
    return check_dataset(*files_, {*background, 2}, folder(), folder().dataset(record.info), record,
                         depth)
        .value();
  };
  EXPECT_TRUE(check(CheckDepth::blocks).troubles.empty());
  EXPECT_EQ(check(CheckDepth::blocks).files, 6U);
  EXPECT_EQ(check(CheckDepth::blocks).bytes, record.bytes);
  std::fstream(prefix() + "/ckpt/r1/f1", std::ios::in | std::ios::out).put('!');
  fs::resize_file(prefix() + "/ckpt/r2/f0", 5);
  fs::remove(prefix() + "/ckpt/r0/f1");
  const auto sizes = check(CheckDepth::sizes).troubles;
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_NE(sizes[0].find("r0/f1"), std::string::npos) << sizes[0];
  EXPECT_NE(sizes[1].find("r2/f0 has 5 bytes"), std::string::npos) << sizes[1];
  const auto blocks = check(CheckDepth::blocks).troubles;
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_NE(blocks[1].find("r1/f1 does not match"), std::string::npos) << blocks[1];
  fs::remove(DatasetFolder::manifest(folder().dataset(record.info), 0));
  ASSERT_EQ(check(CheckDepth::sizes).troubles.size(), 1U);
  EXPECT_NE(check(CheckDepth::sizes).troubles[0].find("ranks 0 to 2"), std::string::npos);
}

}  // namespace
}  // namespace cairn
