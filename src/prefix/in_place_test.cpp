// Datasets written in place: who answers for which part of a shared file, and what is refused.
#include "prefix/in_place.hpp"

#include <chrono>
#include <map>
#include <mutex>

#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

TEST(PartOf, CoversAFileOnceInWholeBlocks) {
  constexpr std::uint64_t block = 512;
  for (const std::uint64_t size : {0, 1, 511, 512, 513, 4096, 5000, 100'000})
    for (const std::uint64_t sharers : {1, 2, 3, 7, 64}) {
      std::uint64_t at = 0;
      for (std::uint64_t i = 0; i < sharers; ++i) {
        const FilePart part = part_of(size, block, i, sharers);
        ASSERT_EQ(part.begin, at) << size << " " << i << " of " << sharers;
        ASSERT_TRUE(part.begin % block == 0 || part.length == 0) << size << " " << i;
        const std::uint64_t fair = (size / block + 1) / sharers + 1;
        ASSERT_LE(part.length, fair * block) << size << " " << i << " of " << sharers;
        at += part.length;
      }
      ASSERT_EQ(at, size);
      ASSERT_TRUE(size == 0 || part_of(size, block, 0, sharers).length > 0) << "the first has some";
    }
}

/// One file of every rank, and one of all.
class InPlace : public PrefixFixture {
 protected:
  static constexpr std::size_t shared_bytes = 50'000;

  static DatasetInfo info_of(int dataset) {
    DatasetInfo info = PrefixFixture::info_of(dataset);
    info.flags |= flag_in_place;
    return info;
  }

  RankRecord write(const PrefixRank& rank, int dataset) const {
    RankRecord record = record_of(info_of(dataset), rank.comm.rank());
    const std::string own = fmt::format("d{}/r{}", dataset, record.rank);
    const std::string shared = fmt::format("d{}/all", dataset);
    fs::create_directories(fmt::format("{}/d{}", prefix(), dataset));
    std::ofstream(prefix() + "/" + own) << content_of(dataset, record.rank, 1);
    if (record.rank == 0) std::ofstream(prefix() + "/" + shared) << std::string(shared_bytes, 's');
    rank.comm.barrier();
    for (const std::string& name : {own, shared}) {
      const FileInfo info = *rank.files->info(prefix() + "/" + name);
      record.files.push_back({name, info.size, info.mode, info.owner, info.group, info.times});
    }
    return record;
  }

  void write_well(int dataset) {
    run_well([&](PrefixRank& rank) {
      RankRecord record = write(rank, dataset);
      const auto published = publish_in_place(rank.comm, rank.site, record, "job", false);
      ASSERT_TRUE(published) << published.error().text;
      ASSERT_TRUE(published->settled);
      EXPECT_EQ(published->record.files, ranks + 1U);
      if (rank.keeper) {
        EXPECT_TRUE(rank.keeper->save_listing());
      }
    });
  }

  /// What every rank says to the dataset; empty where it is good.
  std::string check(int dataset) {
    std::string trouble;
    run_well([&](PrefixRank& rank) {
      std::vector<std::string> damaged;
      const Listing listing = *read_listing(*rank.files, folder(), damaged);
      for (const DatasetRecord& record : listing) {
        if (record.info.uuid != info_of(dataset).uuid) continue;
        const auto checked = check_in_place(rank.comm, rank.site, record);
        if (!checked && rank.comm.rank() == 0) trouble = checked.error().text;
      }
    });
    return trouble;
  }
};

TEST_F(InPlace, EveryRankAnswersForAPartOfASharedFile) {
  write_well(1);
  EXPECT_EQ(check(1), "");
  std::uint64_t at = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const RankRecord record = *read_from_manifest(*make_posix_files(), folder().dataset(info_of(1)),
                                                  rank, ranks_per_manifest);
    EXPECT_TRUE(record.dataset.in_place());
    ASSERT_EQ(record.files.size(), 2U);
    EXPECT_FALSE(record.files[0].part) << "its own";
    EXPECT_EQ(record.files[1].size, shared_bytes);
    EXPECT_EQ(record.files[1].begin(), at);
    EXPECT_GT(record.files[1].length(), 0U);
    at += record.files[1].length();
  }
  EXPECT_EQ(at, shared_bytes);
}

TEST_F(InPlace, AByteFlippedAnywhereInASharedFileIsFound) {
  write_well(1);
  const std::string path = prefix() + "/d1/all";
  const auto flip = [&](std::size_t at) {
    std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
        .seekp(static_cast<std::streamoff>(at))
        .put('x');
  };
  for (std::size_t at = 0; at < shared_bytes; at += 1999) {
    flip(at);
    ASSERT_NE(check(1).find("d1/all does not match its checksum"), std::string::npos) << at;
    std::ofstream(path) << std::string(shared_bytes, 's');
  }
  EXPECT_EQ(check(1), "");
}

TEST_F(InPlace, RanksThatSeeASharedFileDifferentlyAreRefused) {
  run_well([&](PrefixRank& rank) {
    RankRecord record = write(rank, 1);
    if (record.rank == 2) record.files[1].size -= 1;
    const auto published = publish_in_place(rank.comm, rank.site, record, "job", false);
    ASSERT_FALSE(published);
    EXPECT_EQ(published.error().code, Code::invalid);
    EXPECT_NE(published.error().text.find("d1/all has 50000 bytes for rank 0 and 49999 for rank 2"),
              std::string::npos)
        << published.error().text;
  });
  EXPECT_TRUE(fs::exists(prefix() + "/d1/all")) << "it is the program's";
  EXPECT_FALSE(fs::exists(folder().dataset(info_of(1))));
}

TEST_F(InPlace, AFileThatIsStillWrittenToIsRefused) {
  const auto write_over = [](const fs::path& path) {
    std::fstream(path, std::ios::binary | std::ios::in | std::ios::out).put('!');
    fs::last_write_time(path, fs::last_write_time(path) + std::chrono::milliseconds(20));
  };
  const auto append = [](const fs::path& path) { std::ofstream(path, std::ios::app) << "more"; };
  for (const std::function<void(const fs::path&)>& change :
       std::vector<std::function<void(const fs::path&)>>{append, write_over})
    run(
        [&](PrefixRank& rank) {
          RankRecord record = write(rank, 1);
          const auto published = publish_in_place(rank.comm, rank.site, record, "job", false);
          ASSERT_FALSE(published);
          EXPECT_NE(published.error().text.find("d1/r1"), std::string::npos)
              << published.error().text;
        },
        [&](int rank, const FileOperation& operation) -> Status {
          if (rank == 1 && operation.name == "sync_all" && operation.path.ends_with("d1/r1"))
            change(operation.path);
          return {};
        });
}

/// Nothing would say what the dataset is.
TEST_F(InPlace, WithoutAManifestOrAPlanNothingIsPublished) {
  for (const char* unwritten : {"/manifest.0", "/dataset"}) {
    run(
        [&](PrefixRank& rank) {
          RankRecord record = write(rank, 1);
          EXPECT_FALSE(publish_in_place(rank.comm, rank.site, record, "job", false)) << unwritten;
        },
        [&](int, const FileOperation& operation) -> Status {
          const bool struck =
              operation.name == "rename" &&
              operation.to.ends_with(DatasetFolder::folder_name(info_of(1)) + unwritten);
          return struck ? fail(Code::io, "injected") : Status{};
        });
    EXPECT_FALSE(fs::exists(folder().dataset(info_of(1)))) << unwritten;
    EXPECT_TRUE(fs::exists(prefix() + "/d1/all")) << "it is the program's";
  }
}

/// Each node may hold what its own ranks have written to the file.
TEST_F(InPlace, EveryRankSyncsTheFilesThatItShares) {
  std::mutex mutex;
  std::map<std::string, int> synced;
  run(
      [&](PrefixRank& rank) {
        RankRecord record = write(rank, 1);
        ASSERT_TRUE(publish_in_place(rank.comm, rank.site, record, "job", false));
      },
      [&](int rank, const FileOperation& operation) -> Status {
        const std::scoped_lock lock(mutex);
        if (operation.name == "sync_all")
          ++synced[fmt::format("{} by {}", fs::path(operation.path).filename().string(), rank)];
        return {};
      });
  const std::map<std::string, int> once = {{"r0 by 0", 1},  {"r1 by 1", 1},  {"r2 by 2", 1},
                                           {"all by 0", 1}, {"all by 1", 1}, {"all by 2", 1}};
  EXPECT_EQ(synced, once);
}

/// The program has left it as it was, and has named it for both.
TEST_F(InPlace, DeletingLeavesAFileThatIsAnotherDatasetsToo) {
  const std::vector<std::pair<int, int>> cases = {
      {begun_in_future, 1}, {begun_in_future, begun_in_future}, {begun_just_now, begun_just_now}};
  for (const auto& each : cases) {
    const int next = each.first;
    const int deleted = each.second;
    write_well(1);
    run_well([&](PrefixRank& rank) {
      RankRecord record = write(rank, next);
      const std::string mesh = "d1/r0";
      const FileInfo info = *rank.files->info(prefix() + "/" + mesh);
      record.files.push_back({mesh, info.size, info.mode, info.owner, info.group, info.times});
      const auto published = publish_in_place(rank.comm, rank.site, record, "job", false);
      ASSERT_TRUE(published && published->settled);
    });
    run_well([&](PrefixRank& rank) {
      ASSERT_TRUE(on_keeper(rank.comm, rank.site,
                            [&](Keeper& keeper) { return keeper.take_out(info_of(deleted)); }));
      const auto kept = remove_files(rank.comm, rank.site, info_of(deleted), ranks_per_manifest);
      ASSERT_TRUE(kept);
      EXPECT_EQ(kept->shared, 1) << deleted << ": a file, however many ranks name it";
    });
    const int left = deleted == 1 ? next : 1;
    EXPECT_EQ(check(left), "") << deleted;
    run_well([&](PrefixRank& rank) {
      ASSERT_TRUE(on_keeper(rank.comm, rank.site,
                            [&](Keeper& keeper) { return keeper.take_out(info_of(left)); }));
      ASSERT_TRUE(remove_files(rank.comm, rank.site, info_of(left), ranks_per_manifest));
    });
    EXPECT_FALSE(fs::exists(prefix() + "/d1/r0")) << deleted;
  }
}

TEST_F(InPlace, DeletingTakesTheSharedFileToo) {
  write_well(1);
  std::ofstream(prefix() + "/d1/mine") << "the user's";
  run_well([&](PrefixRank& rank) {
    rank.site.copy_metadata = false;
    ASSERT_TRUE(on_keeper(rank.comm, rank.site,
                          [](Keeper& keeper) { return keeper.take_out(info_of(1)); }));
    ASSERT_TRUE(remove_files(rank.comm, rank.site, info_of(1), ranks_per_manifest));
  });
  EXPECT_EQ(read_all(prefix() + "/d1/mine"), "the user's");
  EXPECT_EQ(std::distance(fs::directory_iterator(prefix() + "/d1"), {}), 1);
}

}  // namespace
}  // namespace cairn
