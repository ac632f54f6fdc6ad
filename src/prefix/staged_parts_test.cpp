// Staged files that several processes may be writing, and parts that are done but not published.
#include <array>
#include <filesystem>

#include "prefix/copy_files.hpp"
#include "prefix/flush_parts.hpp"
#include "prefix/manifest.hpp"
#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

class StagedParts : public PrefixFixture {
 protected:
  /// Rank 0 stages a part of dataset 2 whose files have this mode, then does `act`.
  void stage_then(std::uint32_t mode, bool keeps_attributes,
                  const std::function<void(Site&, const RankRecord&)>& act) {
    run_well([&](PrefixRank& rank) {
      RankRecord record = write_part(rank, 2);
      for (FileEntry& file : record.files) file.mode = mode;
      if (rank.comm.rank() != 0) return;
      rank.site.copy_metadata = keeps_attributes;
      const std::string plan = folder().pending(rank.site.epoch, record.dataset);
      std::filesystem::create_directories(DatasetFolder::markers(plan));
      const Status staged =
          do_part(rank.site, plan, record, cached_paths(record, 2), StageBy::copy);
      ASSERT_TRUE(staged) << staged.error().text;
      act(rank.site, record);
    });
  }

  std::uint32_t mode_of(const Site& site, const std::string& path) const {
    const auto found = site.files.info(path);
    return found ? found->mode : 0;
  }
};

/// Else a process that copies the same part could not open it ("Permission denied").
TEST_F(StagedParts, AReadOnlyFileStaysWritableUntilItGetsItsName) {
  stage_then(0440, true, [&](Site& site, const RankRecord& record) {
    for (std::size_t i = 0; i < record.files.size(); ++i)
      EXPECT_EQ(mode_of(site, folder().staged(record, i)), 0640U);
    ASSERT_TRUE(settle_rank(site.files, folder(), record));
    for (const FileEntry& file : record.files) {
      const auto named = site.files.info(folder().file(file));
      ASSERT_TRUE(named) << named.error().text;
      EXPECT_EQ(named->mode, 0440U);
      EXPECT_EQ(named->times.modify_ns, file.times.modify_ns);
    }
  });
}

TEST_F(StagedParts, TheModeIsDurableBeforeTheName) {
  stage_then(0400, true, [&](Site& site, const RankRecord& record) {
    std::string calls;
    const auto watched =
        make_hooked_files(site.files, [&](const FileOperation& operation) -> Status {
          if (operation.path != folder().staged(record, 0) || operation.name == "info") return {};
          calls += fmt::format("{} ", operation.name);
          return {};
        });
    ASSERT_TRUE(settle_rank(*watched, folder(), record));
    EXPECT_EQ(calls, "open set_attributes sync_all rename ");
  });
}

TEST_F(StagedParts, WhatKeepsNoAttributesKeepsTheModeOfItsCopy) {
  stage_then(0440, false, [&](Site& site, const RankRecord& record) {
    const std::uint32_t mode = mode_of(site, folder().staged(record, 0));
    EXPECT_NE(mode & 0200U, 0U);
    ASSERT_TRUE(settle_rank(site.files, folder(), record));
    EXPECT_EQ(mode_of(site, folder().file(record.files[0])), mode);
  });
}

/// Of three ranks, two in the first manifest. Each has marked its part, and died before it could
/// look whether it was the last.
TEST_F(StagedParts, TheRanksOfAllManifestsAreLookedAt) {
  std::array<Blob, ranks> records;
  run_well([&](PrefixRank& rank) {
    const RankRecord record = write_part(rank, 2);
    DatasetRecord plan;
    plan.info = record.dataset;
    plan.ranks_per_manifest = 2;
    const std::string pending = folder().pending(rank.site.epoch, record.dataset);
    ASSERT_TRUE(on_keeper(rank.comm, rank.site,
                          [&](Keeper& keeper) { return keeper.begin(record.dataset); }));
    records[static_cast<std::size_t>(record.rank)] = encode(record);
    rank.comm.barrier();
    if (record.rank == 0) {
      Blob first = records[0];
      first.insert(first.end(), records[1].begin(), records[1].end());
      ASSERT_TRUE(write_manifest(*rank.files, pending, 0, first));
      ASSERT_TRUE(write_manifest(*rank.files, pending, 1, records[2]));
    }
    rank.comm.barrier();
    ASSERT_TRUE(on_keeper(rank.comm, rank.site,
                          [&](Keeper& keeper) { return keeper.epoch_folder().plan(plan); }));
    ASSERT_TRUE(do_part(rank.site, pending, record, cached_paths(record, 2), StageBy::copy));
    rank.comm.barrier();
    if (rank.comm.rank() != 0) return;
    const auto state = publish_if_done(rank.site, plan);
    ASSERT_TRUE(state) << state.error().text;
    EXPECT_EQ(*state, Publication::State::published);
  });
}

}  // namespace
}  // namespace cairn
