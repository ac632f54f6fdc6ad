// What goes when a dataset is deleted in the prefix directory, and what stays.
#include <atomic>

#include "files/passing_files.hpp"
#include "support/prefix_fixture.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

class Deleting : public PrefixFixture {
 protected:
  KeptFiles delete_dataset(bool copy_metadata = true, int number = 1) {
    KeptFiles kept;
    run_well([&](PrefixRank& rank) {
      rank.site.copy_metadata = copy_metadata;
      ASSERT_TRUE(on_keeper(rank.comm, rank.site,
                            [&](Keeper& keeper) { return keeper.take_out(info_of(number)); }));
      const auto removed = remove_files(rank.comm, rank.site, info_of(number), ranks_per_manifest);
      ASSERT_TRUE(removed) << removed.error().text;
      if (rank.comm.rank() == 1) kept = *removed;  // all know of all
    });
    EXPECT_EQ(fetch_again(number), "not listed");
    return kept;
  }

  void set_time(const std::string& name, std::int64_t ns) const {
    const auto files = make_posix_files();
    const std::string path = prefix() + "/ckpt/" + name;
    ASSERT_TRUE(files->set_attributes(path, 0640, {ns, ns}));
  }
};

TEST_F(Deleting, RemovesTheFilesOfTheDatasetAndNoOthers) {
  flush_well(1);
  std::ofstream(prefix() + "/ckpt/r0/mine") << "the user's";
  EXPECT_EQ(said_of_kept(delete_dataset()), "");
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt/r1"));
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt/r0/f1"));
  EXPECT_EQ(read_all(prefix() + "/ckpt/r0/mine"), "the user's");
}

TEST_F(Deleting, TakesTheFoldersThatAreEmptyThen) {
  flush_well(1);
  delete_dataset();
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt")) << "two levels";
  EXPECT_TRUE(fs::exists(prefix()));
}

TEST_F(Deleting, AFileSystemThatCutsTimesKeepsNoFiles) {
  modify_ns = 1'234'567'891'234'567'891;
  for (const std::int64_t unit_ns : {100, 1'000, 1'000'000, 1'000'000'000}) {
    flush_well(1);
    for (const char* name : {"r0/f0", "r0/f1", "r1/f0", "r1/f1", "r2/f0", "r2/f1"})
      set_time(name, modify_ns / unit_ns * unit_ns);
    EXPECT_EQ(said_of_kept(delete_dataset()), "") << unit_ns;
    EXPECT_FALSE(fs::exists(prefix() + "/ckpt")) << unit_ns;
  }
}

TEST_F(Deleting, WhatStaysIsReported) {
  flush_well(1);
  set_time("r1/f0", modify_ns + 1'000'000'000);
  std::ofstream(prefix() + "/ckpt/r2/f1", std::ios::app) << "more";
  const KeptFiles kept = delete_dataset();
  EXPECT_EQ(kept.changed, 2);
  EXPECT_EQ(kept.unknown, 0);
  EXPECT_NE(said_of_kept(kept).find("2 of its files stay"), std::string::npos);
  EXPECT_TRUE(fs::exists(prefix() + "/ckpt/r1/f0") && fs::exists(prefix() + "/ckpt/r2/f1"));
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt/r0"));
}

/// It was not reported before: the process that had begun has died.
TEST_F(Deleting, WhatStaysIsReportedByTheProcessThatEndsIt) {
  flush_well(1);
  set_time("r1/f0", modify_ns + 1'000'000'000);
  run([](PrefixRank& rank) {
    if (!rank.keeper) return;
    ASSERT_TRUE(rank.keeper->take_out(info_of(1)));
  });
  run([](PrefixRank& rank) {
    Tidied tidied;
    ASSERT_TRUE(tidy(rank.comm, rank.site, {}, Unfinished::left, &tidied));
    ASSERT_EQ(tidied.kept.size(), 1U);
    EXPECT_TRUE(tidied.kept[0].starts_with("dataset 1 (ckpt.1) is deleted: 1 of its files stay"))
        << tidied.kept[0];
  });
  EXPECT_TRUE(fs::exists(prefix() + "/ckpt/r1/f0"));
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt/r0"));
}

/// By size and time they are those of either: of a file system that keeps whole seconds, or files
/// that the program has copied with their times.
TEST_F(Deleting, WhatMayBeTheNextDatasetsStays) {
  for (const bool is_ended_by_next_run : {false, true}) {
    flush_well(1);
    flush_well(2);
    if (is_ended_by_next_run) {
      run([](PrefixRank& rank) { EXPECT_TRUE(!rank.keeper || rank.keeper->take_out(info_of(1))); });
      run_well([](PrefixRank&) {});
    } else {
      const KeptFiles kept = delete_dataset();
      EXPECT_EQ(kept.shared, 6);
      EXPECT_NE(
          said_of_kept(kept).find("another dataset has files of the same names, sizes and times"),
          std::string::npos);
    }
    EXPECT_EQ(fetch_again(2), "");
    EXPECT_EQ(names_of_cairn(), std::vector<std::string>{}) << "nothing is left to do";
  }
}

TEST_F(Deleting, WhatHasOtherNamesGoesWhateverItsTime) {
  for (const std::int64_t time_ns : {0, 1'000'000'000}) {  // before all were begun, and after
    modify_ns = time_ns;
    for (const int dataset : {1, 2, 3}) {
      files_in = fmt::format("ckpt.{}", dataset);
      flush_well(dataset);
    }
    EXPECT_EQ(said_of_kept(delete_dataset(true, 2)), "") << time_ns;
    EXPECT_FALSE(fs::exists(prefix() + "/ckpt.2")) << time_ns;
    EXPECT_EQ(fetch_again(1) + fetch_again(3), "") << time_ns;
    for (const int dataset : {1, 3}) delete_dataset(true, dataset);
    EXPECT_FALSE(fs::exists(prefix() + "/ckpt.1") || fs::exists(prefix() + "/ckpt.3")) << time_ns;
  }
}

/// A mesh, say, that is copied to each checkpoint with its time.
TEST_F(Deleting, WhatMayBeAnOlderDatasetsStays) {
  modify_ns = 0;
  flush_well(1);
  flush_well(2);
  EXPECT_EQ(delete_dataset(true, 2).shared, 6);
  EXPECT_TRUE(fs::exists(prefix() + "/ckpt/r1/f1"));
}

TEST_F(Deleting, WhatWasWrittenAfterAllOlderDatasetsGoes) {
  flush_well(1);
  flush_well(2);
  EXPECT_EQ(said_of_kept(delete_dataset(true, 2)), "") << "it had replaced those of the older one";
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt"));
}

/// No run can restart from that one any more, and it keeps nothing of others.
TEST_F(Deleting, ADamagedManifestOfAnotherKeepsNoFiles) {
  flush_well(1);
  files_in = "other";
  flush_well(2);
  const std::string manifest = DatasetFolder::manifest(folder().dataset(info_of(2)), 0);
  std::ofstream(manifest, std::ios::trunc) << "damaged";
  EXPECT_EQ(said_of_kept(delete_dataset()), "");
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt"));
}

/// Shows files as if they had come to be where they are so long ago.
class AgedFiles final : public PassingFiles {
 public:
  AgedFiles(std::string folder, std::int64_t age_us)
      : PassingFiles(make_posix_files()), folder_(std::move(folder)), age_us_(age_us) {}

  Result<FileInfo> info(const std::string& path) override {
    auto info = PassingFiles::info(path);
    if (info && path.starts_with(folder_)) info->change_ns -= age_us_ * 1000;
    return info;
  }

 private:
  const std::string folder_;
  const std::int64_t age_us_;
};

TEST_F(Deleting, AnotherDatasetsManifestsAreReadOnlyWhereItMayHaveTheFiles) {
  struct Case {
    std::int64_t files_age_us;
    std::int64_t clock_ahead_us;
    bool asks;  ///< the other one, which was begun half an hour ago
  };
  for (const auto& [files_age_us, clock_ahead_us, asks] :
       {Case{60 * minute_us, 0, false}, Case{20 * minute_us, 0, true},
        Case{30 * minute_us + minute_us / 2, 0, true},   // clocks may differ so much
        Case{60 * minute_us, 45 * minute_us, true},      // and this one does
        Case{60 * minute_us, -45 * minute_us, true}}) {  // or did, when that was begun
    files_in = "ckpt";
    flush_well(1);
    files_in = "other";
    flush_well(begun_later);
    make_files = [&, age_us = files_age_us] {
      return std::make_unique<AgedFiles>(prefix() + "/ckpt", age_us);
    };
    make_clock = [ahead_us = clock_ahead_us](int) {
      return std::make_unique<SkewedClock>(1, ahead_us);
    };
    const std::string manifests = folder().dataset(info_of(begun_later)) + "/manifest";
    std::atomic<int> asked = 0;
    run(
        [](PrefixRank& rank) {
          const auto take_out = [](Keeper& keeper) { return keeper.take_out(info_of(1)); };
          ASSERT_TRUE(on_keeper(rank.comm, rank.site, take_out));
          EXPECT_TRUE(remove_files(rank.comm, rank.site, info_of(1), ranks_per_manifest));
        },
        [&](int, const FileOperation& operation) -> Status {
          asked += operation.path.starts_with(manifests) ? 1 : 0;
          return {};
        });
    EXPECT_EQ(asked > 0, asks) << files_age_us << " " << clock_ahead_us;
    EXPECT_FALSE(fs::exists(prefix() + "/ckpt"));
    make_files = make_posix_files;
    make_clock = [](int) { return make_system_clock(); };
  }
}

/// The error of one rank is all ranks', and who comes next goes on.
TEST_F(Deleting, WhereAnotherCannotBeAskedNothingThatIsInDoubtGoes) {
  flush_well(1);
  files_in = "other";
  flush_well(2);
  const std::string manifests = folder().dataset(info_of(2)) + "/manifest";
  run(
      [](PrefixRank& rank) {
        const auto take_out = [](Keeper& keeper) { return keeper.take_out(info_of(1)); };
        ASSERT_TRUE(on_keeper(rank.comm, rank.site, take_out));
        EXPECT_FALSE(remove_files(rank.comm, rank.site, info_of(1), ranks_per_manifest));
      },
      [&](int, const FileOperation& operation) -> Status {
        if (operation.path.starts_with(manifests))
          return fail(Code::io, "the disk is slow to wake");
        return {};
      });
  for (const char* name : {"r0/f0", "r1/f1", "r2/f1"})
    EXPECT_TRUE(fs::exists(prefix() + "/ckpt/" + name)) << name;
  run_well([](PrefixRank&) {});
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt"));
  EXPECT_EQ(fetch_again(2), "");
}

/// Whose record is damaged as well: it is not known when it was begun.
TEST_F(Deleting, WhatIsInDoubtStaysAlsoWhereTheOwnRecordIsDamaged) {
  flush_well(1);
  flush_well(2);
  run([](PrefixRank& rank) { EXPECT_TRUE(!rank.keeper || rank.keeper->take_out(info_of(1))); });
  for (const auto& entry : fs::recursive_directory_iterator(folder().root()))
    if (entry.path().filename() == "dataset" &&
        entry.path().parent_path().filename().string().starts_with("deleted."))
      std::ofstream(entry.path(), std::ios::trunc) << "damaged";
  run_well([](PrefixRank&) {});
  EXPECT_EQ(fetch_again(2), "");
  EXPECT_EQ(names_of_cairn(), std::vector<std::string>{});
}

/// Each goes by itself, and the files with the last.
TEST_F(Deleting, ThreeMayHaveTheSameFiles) {
  modify_ns = 0;
  for (const int dataset : {1, 2, 3}) flush_well(dataset);
  EXPECT_EQ(delete_dataset(true, 2).shared, 6);
  EXPECT_EQ(delete_dataset(true, 3).shared, 6);
  EXPECT_TRUE(fs::exists(prefix() + "/ckpt/r1/f1"));
  EXPECT_EQ(said_of_kept(delete_dataset(true, 1)), "");
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt"));
}

/// A user has moved them to an archive, with their times, and left a link.
TEST_F(Deleting, WhatALinkLeadsToStaysAndThatIsReported) {
  for (const char* moved : {"ckpt", "ckpt/r1"}) {
    flush_well(1);
    const std::string archive = base_.path() + "/archive";
    fs::rename(prefix() + "/" + moved, archive);
    fs::create_directory_symlink(archive, prefix() + "/" + moved);
    const KeptFiles kept = delete_dataset();
    const bool all = std::string(moved) == "ckpt";
    EXPECT_EQ(kept.led_out, all ? 6 : 2) << moved;
    EXPECT_NE(said_of_kept(kept).find("of its files stay, because a link leads"),
              std::string::npos);
    EXPECT_EQ(read_all(archive + (all ? "/r1/f0" : "/f0")), content_of(1, 1, 0)) << moved;
    EXPECT_EQ(fs::exists(prefix() + "/ckpt/r0/f0"), all) << "those beside it go";
    EXPECT_EQ(names_of_cairn(), std::vector<std::string>{}) << "nothing is left to do";
    for (const std::string& path : {prefix() + "/ckpt", archive}) fs::remove_all(path);
  }
}

TEST_F(Deleting, WhatALinkLeadsToStaysIfAnotherProcessEndsIt) {
  flush_well(1);
  run([](PrefixRank& rank) {
    if (!rank.keeper) return;
    ASSERT_TRUE(rank.keeper->take_out(info_of(1)));
  });
  const std::string archive = base_.path() + "/archive";
  fs::rename(prefix() + "/ckpt", archive);
  fs::create_directory_symlink(archive, prefix() + "/ckpt");
  run_well([](PrefixRank&) {});
  EXPECT_EQ(read_all(archive + "/r1/f0"), content_of(1, 1, 0));
  EXPECT_EQ(names_of_cairn(), std::vector<std::string>{});
}

TEST_F(Deleting, WhoseTimesWereNotKeptStaysAndThatIsReported) {
  flush_well(1);
  const KeptFiles kept = delete_dataset(false);
  EXPECT_EQ(kept.changed, 0);
  EXPECT_EQ(kept.unknown, 6);
  EXPECT_NE(said_of_kept(kept).find("SCR_COPY_METADATA"), std::string::npos);
  EXPECT_TRUE(fs::exists(prefix() + "/ckpt/r1/f0"));
}

}  // namespace
}  // namespace cairn
