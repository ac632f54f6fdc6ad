// What goes when a dataset is deleted in the prefix directory, and what stays.
#include <atomic>

#include "prefix/prefix_harness.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

using namespace prefix_harness;

class Deleting : public Prefix {
 protected:
  KeptFiles delete_dataset(bool copy_metadata = true, int number = 1) {
    KeptFiles kept;
    run_well([&](RankRun& rank) {
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

TEST_F(Deleting, TakesTheFilesAlongAndNobodyElses) {
  flush_well(1);
  std::ofstream(prefix() + "/ckpt/r0/mine") << "the user's";
  EXPECT_EQ(said_of_kept(delete_dataset()), "");
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt/r1"));
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt/r0/f1"));
  EXPECT_EQ(read(prefix() + "/ckpt/r0/mine"), "the user's");
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

TEST_F(Deleting, WhatStaysIsTold) {
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

/// Nobody else has told it: whoever had begun has died.
TEST_F(Deleting, WhatStaysIsToldByWhoeverEndsIt) {
  flush_well(1);
  set_time("r1/f0", modify_ns + 1'000'000'000);
  run([](RankRun& rank) {
    if (!rank.keeper) return;
    ASSERT_TRUE(rank.keeper->take_out(info_of(1)));
  });
  run([](RankRun& rank) {
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
      run([](RankRun& rank) { EXPECT_TRUE(!rank.keeper || rank.keeper->take_out(info_of(1))); });
      run_well([](RankRun&) {});
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

/// Nobody can restart from that one any more, and it keeps nothing of others.
TEST_F(Deleting, ADamagedManifestOfAnotherKeepsNoFiles) {
  flush_well(1);
  files_in = "other";
  flush_well(2);
  const std::string manifest = PrefixFolder::manifest(folder().dataset(info_of(2)), 0);
  std::ofstream(manifest, std::ios::trunc) << "damaged";
  EXPECT_EQ(said_of_kept(delete_dataset()), "");
  EXPECT_FALSE(fs::exists(prefix() + "/ckpt"));
}

TEST_F(Deleting, AnotherDatasetsManifestsAreReadOnlyWhereItMayHaveTheFiles) {
  for (const int other : {begun_later, 2}) {
    files_in = "ckpt";
    flush_well(1);
    files_in = "other";
    flush_well(other);
    const std::string manifests = folder().dataset(info_of(other)) + "/manifest";
    run([](RankRun& rank) { EXPECT_TRUE(!rank.keeper || rank.keeper->take_out(info_of(1))); });
    std::atomic<int> asked = 0;
    run([](RankRun& rank) { EXPECT_TRUE(tidy(rank.comm, rank.site, {}, Unfinished::left)); },
        [&](int, const FileOperation& operation) -> Status {
          asked += operation.path.starts_with(manifests) ? 1 : 0;
          return {};
        });
    EXPECT_EQ(asked > 0, other == 2);
    EXPECT_FALSE(fs::exists(prefix() + "/ckpt"));
  }
}

/// Somebody has moved them to an archive, with their times, and left a link.
TEST_F(Deleting, WhatALinkLeadsToStaysAndThatIsTold) {
  for (const char* moved : {"ckpt", "ckpt/r1"}) {
    flush_well(1);
    const std::string archive = base_.path() + "/archive";
    fs::rename(prefix() + "/" + moved, archive);
    fs::create_directory_symlink(archive, prefix() + "/" + moved);
    const KeptFiles kept = delete_dataset();
    const bool all = std::string(moved) == "ckpt";
    EXPECT_EQ(kept.led_out, all ? 6 : 2) << moved;
    EXPECT_NE(said_of_kept(kept).find("of its files stay, as a link leads"), std::string::npos);
    EXPECT_EQ(read(archive + (all ? "/r1/f0" : "/f0")), content_of(1, 1, 0)) << moved;
    EXPECT_EQ(fs::exists(prefix() + "/ckpt/r0/f0"), all) << "those beside it go";
    EXPECT_EQ(names_of_cairn(), std::vector<std::string>{}) << "nothing is left to do";
    for (const std::string& path : {prefix() + "/ckpt", archive}) fs::remove_all(path);
  }
}

TEST_F(Deleting, WhatALinkLeadsToStaysWhoeverEndsIt) {
  flush_well(1);
  run([](RankRun& rank) {
    if (!rank.keeper) return;
    ASSERT_TRUE(rank.keeper->take_out(info_of(1)));
  });
  const std::string archive = base_.path() + "/archive";
  fs::rename(prefix() + "/ckpt", archive);
  fs::create_directory_symlink(archive, prefix() + "/ckpt");
  run_well([](RankRun&) {});
  EXPECT_EQ(read(archive + "/r1/f0"), content_of(1, 1, 0));
  EXPECT_EQ(names_of_cairn(), std::vector<std::string>{});
}

TEST_F(Deleting, WhoseTimesWereNotKeptStaysAndThatIsTold) {
  flush_well(1);
  const KeptFiles kept = delete_dataset(false);
  EXPECT_EQ(kept.changed, 0);
  EXPECT_EQ(kept.unknown, 6);
  EXPECT_NE(said_of_kept(kept).find("SCR_COPY_METADATA"), std::string::npos);
  EXPECT_TRUE(fs::exists(prefix() + "/ckpt/r1/f0"));
}

}  // namespace
}  // namespace cairn
