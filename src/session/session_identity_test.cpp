// Which prefix directory a job's caches are for.
#include <array>
#include <filesystem>

#include "session/prefix_cluster.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

/// Nothing reaches the prefix directory but its id: what a restart finds is in the caches.
class IdentityCluster : public PrefixCluster {
 public:
  IdentityCluster() {
    settings.flush_interval = 0;
    go_to("pfs");
  }

  /// The job's next run is in this prefix directory.
  void go_to(const std::string& name) {
    settings.prefix = node(name);
    fs::create_directories(settings.prefix);
  }
  void move(const std::string& from, const std::string& to) {
    fs::rename(node(from), node(to));
    settings.prefix = node(to);
  }
  void copy(const std::string& from, const std::string& to) {
    fs::copy(node(from), node(to), fs::copy_options::recursive);
  }
  /// The command that a message names, for a directory that is to have the caches of this id.
  std::string remedy(PrefixId id) const {
    return "cairn index id " + text_of(id) + " -p " + settings.prefix;
  }
  void carry_out_remedy(PrefixId id) {
    const auto files = make_posix_files();
    ASSERT_TRUE(replace_prefix_id(*files, *clock, settings.prefix, id));
  }
  /// A run in whose prefix directory nothing can be made or changed.
  void run_read_only(const RankMain& rank_main) {
    EXPECT_TRUE(run(four_nodes(), [&](JobRank& rank) {
      rank.hook = [&](const FileOperation& operation) -> Status {
        constexpr std::array changing = {"create", "link", "lock", "make_folder",
                                         "make_new_folder"};
        const bool changes =
            std::find(changing.begin(), changing.end(), operation.name) != changing.end();
        if (!changes || !operation.path.starts_with(settings.prefix)) return {};
        return fail(Code::io, "injected: read-only: {} {}", operation.name, operation.path);
      };
      const Status ready = rank.init();
      ASSERT_TRUE(ready) << ready.error().text;
      rank_main(rank);
    }));
  }
  std::string id_file() const { return settings.prefix + "/.cairn/id"; }
  RecordedId recorded() const {
    const auto files = make_posix_files();
    return read_prefix_id(*files, settings.prefix);
  }
  std::vector<JobFolder> folders(const std::string& name = "n0") const {
    const auto files = make_posix_files();
    JobFolders all;
    find_job_folders(*files, node(name), settings, all);
    return all.found;
  }
  /// A run at whose Init, and as long as `is_away` is set, nothing in the prefix directory can be
  /// read or written.
  void run_away(std::atomic<bool>& is_away, const RankMain& rank_main) {
    EXPECT_TRUE(run(four_nodes(), [&](JobRank& rank) {
      rank.hook = [&](const FileOperation& operation) -> Status {
        if (!is_away || !operation.path.starts_with(settings.prefix)) return {};
        return fail(Code::io, "injected: cannot {} {}", operation.name, operation.path);
      };
      const Status ready = rank.init();
      ASSERT_TRUE(ready) << ready.error().text;
      rank_main(rank);
    }));
  }
  /// The same for the whole run; from which dataset it restarts.
  int restart_away(const RankMain& more = [](JobRank&) {}) {
    std::atomic<bool> is_away = true;
    std::atomic<int> from = -1;
    run_away(is_away, [&](JobRank& rank) {
      const auto name = rank.session->have_restart();
      if (!name || !*name) {
        from = 0;
      } else {
        ASSERT_TRUE(rank.session->start_restart());
        ASSERT_TRUE(rank.session->complete_restart(true));
        from = std::stoi((*name)->substr((*name)->rfind('.') + 1));
      }
      more(rank);
    });
    return from;
  }
};

TEST(SessionIdentity, AProgramInAnotherDirectoryNeverSeesTheCheckpoint) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1, 2});
  cluster.go_to("other");
  EXPECT_EQ(cluster.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(7); }), 0);
  cluster.go_to("pfs");
  EXPECT_EQ(cluster.restart(four_nodes()), 2);
  cluster.go_to("other");
  EXPECT_EQ(cluster.restart(four_nodes()), 7);
}

TEST(SessionIdentity, ProgramsInTwoDirectoriesRunAtTheSameTime) {
  IdentityCluster cluster;
  cluster.go_to("other");
  const std::string other = cluster.settings.prefix;
  cluster.go_to("pfs");
  cluster.run_well(four_nodes(), [&](JobRank& one) {
    Settings elsewhere = one.settings;
    elsewhere.prefix = other;
    JobRank two(one.comm, elsewhere, one.clock, cluster.log());
    const Status ready = two.init();
    ASSERT_TRUE(ready) << ready.error().text;
    one.expect_written(1);
    two.expect_written(9);
  });
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  cluster.go_to("other");
  EXPECT_EQ(cluster.restart(four_nodes()), 9);
}

/// The other job records its id while this one is about to.
TEST(SessionIdentity, AJobThatComesSecondNamesItsCachesByTheIdOfTheFirst) {
  constexpr PrefixId first{0x77};
  IdentityCluster cluster;
  EXPECT_TRUE(cluster.run(four_nodes(), [&](JobRank& rank) {
    rank.hook = [&, done = false](const FileOperation& operation) mutable -> Status {
      if (operation.name == "link" && !std::exchange(done, true)) cluster.carry_out_remedy(first);
      return {};
    };
    ASSERT_TRUE(rank.init());
    rank.expect_written(1);
  }));
  EXPECT_EQ(cluster.recorded().id, first);
  EXPECT_TRUE(cluster.job_folder("n0").ends_with(text_of(first))) << cluster.job_folder("n0");
}

TEST(SessionIdentity, AMovedDirectoryKeepsItsCaches) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.move("pfs", "moved");
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  cluster.go_to("pfs");
  EXPECT_EQ(cluster.restart(four_nodes()), 0) << "another directory at the old path";
}

TEST(SessionIdentity, ACopyThatIsUsedFirstDoesNotGetTheCaches) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  const PrefixId original = cluster.recorded().id;
  cluster.copy("pfs", "copy");
  cluster.go_to("copy");
  EXPECT_EQ(cluster.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(5); }), 0);
  EXPECT_TRUE(cluster.said(cluster.node("pfs"))) << "the original is named: " << cluster.said();
  EXPECT_TRUE(cluster.said(cluster.remedy(original))) << cluster.said();
  EXPECT_NE(cluster.recorded().id, original);
  EXPECT_EQ(cluster.restart(four_nodes()), 5);
  EXPECT_FALSE(cluster.said("cairn index id")) << "told once: " << cluster.said();
  cluster.go_to("pfs");
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

TEST(SessionIdentity, ACopyDoesNotGetTheCachesWhileItsOriginalIsAbsent) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  const PrefixId original = cluster.recorded().id;
  cluster.copy("pfs", "copy");
  fs::rename(cluster.node("pfs"), cluster.node("aside"));
  cluster.go_to("copy");
  EXPECT_EQ(cluster.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(5); }), 0);
  EXPECT_TRUE(cluster.said(cluster.remedy(original))) << cluster.said();
  fs::rename(cluster.node("aside"), cluster.node("pfs"));
  cluster.go_to("pfs");
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  EXPECT_EQ(cluster.recorded().id, original);
}

TEST(SessionIdentity, AnOriginalThatMovedAfterItWasCopiedKeepsItsCaches) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.copy("pfs", "copy");
  cluster.move("pfs", "moved");
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  cluster.go_to("copy");
  EXPECT_EQ(cluster.restart(four_nodes()), 0);
  cluster.go_to("moved");
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

TEST(SessionIdentity, ACopyInThePlaceOfItsOriginalGetsTheCachesAndTheOriginalDoesNot) {
  for (const bool original_first : {false, true}) {
    IdentityCluster cluster;
    cluster.write(four_nodes(), {1});
    fs::rename(cluster.node("pfs"), cluster.node("aside"));
    cluster.copy("aside", "pfs");
    for (const bool is_original : {original_first, !original_first}) {
      cluster.go_to(is_original ? "aside" : "pfs");
      EXPECT_EQ(cluster.restart(four_nodes()), is_original ? 0 : 1) << original_first;
    }
  }
}

/// It has another path and another inode, as a copy has.
TEST(SessionIdentity, ADirectoryMovedToAnotherFileSystemGetsItsCachesByTheNamedCommand) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  const PrefixId id = cluster.recorded().id;
  cluster.copy("pfs", "moved");
  fs::remove_all(cluster.node("pfs"));
  cluster.go_to("moved");
  EXPECT_EQ(cluster.restart(four_nodes()), 0);
  ASSERT_TRUE(cluster.said(cluster.remedy(id))) << cluster.said();
  cluster.carry_out_remedy(id);
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  EXPECT_EQ(cluster.restart(four_nodes()), 1) << "and keeps them";
}

TEST(SessionIdentity, ABackupRestoredWhereTheDirectoryWasDoesNotGetTheCachesOfTheMovedOne) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.copy("pfs", "backup");
  cluster.move("pfs", "moved");
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  cluster.move("backup", "pfs");
  EXPECT_EQ(cluster.restart(four_nodes()), 0);
  cluster.go_to("moved");
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

TEST(SessionIdentity, ABackupRestoredWhereTheDirectoryWasGetsItsCaches) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.copy("pfs", "backup");
  fs::remove_all(cluster.node("pfs"));
  cluster.move("backup", "pfs");
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

TEST(SessionIdentity, ACopyInWhichNothingCanBeWrittenFindsItsCachesByItsPath) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.copy("pfs", "copy");
  cluster.go_to("copy");
  cluster.run_read_only([](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 0);
    rank.expect_written(5);
  });
  cluster.run_read_only([](JobRank& rank) { EXPECT_EQ(rank.restart(), 5); });
  cluster.go_to("pfs");
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

TEST(SessionIdentity, ADirectoryThatWasMovedAndCannotBeWrittenKeepsItsCachesWithAWarning) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.move("pfs", "moved");
  cluster.run_read_only([](JobRank& rank) { EXPECT_EQ(rank.restart(), 1); });
  EXPECT_TRUE(cluster.said(".cairn writable")) << cluster.said();
}

TEST(SessionIdentity, ADirectoryThatGotANewIdNamesTheCachesOfTheOldOne) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  const PrefixId old = cluster.recorded().id;
  fs::remove_all(cluster.settings.prefix + "/.cairn");
  EXPECT_EQ(cluster.restart(four_nodes()), 0);
  EXPECT_TRUE(cluster.said(cluster.remedy(old))) << cluster.said();
  EXPECT_EQ(cluster.restart(four_nodes()), 0);
  EXPECT_TRUE(cluster.said(cluster.remedy(old))) << "as long as it is there: " << cluster.said();
  cluster.carry_out_remedy(old);
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

TEST(SessionIdentity, EntriesOfTheCacheThatAreNotOursAreIgnored) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  const std::string base = cluster.node("n1") + "/tester/cairn.job.";
  fs::create_directory_symlink(cluster.node("n0"), base + "fedcba9876543210");
  std::ofstream(base + "1111111111111111") << "a file";
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  EXPECT_TRUE(cluster.said(base + "fedcba9876543210")) << cluster.said();
  EXPECT_TRUE(cluster.said(base + "1111111111111111")) << cluster.said();
}

TEST(SessionIdentity, ANoteThatCannotBeWrittenIsAWarning) {
  IdentityCluster cluster;
  EXPECT_TRUE(cluster.run(four_nodes(), [](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      const bool is_note = operation.name == "create" && operation.path.ends_with("/prefix.id.tmp");
      return is_note ? fail(Code::no_space, "injected: {}", operation.path) : Status{};
    };
    const Status ready = rank.init();
    ASSERT_TRUE(ready) << ready.error().text;
    rank.expect_written(1);
  }));
  EXPECT_TRUE(cluster.said("injected: " + cluster.node("n2"))) << cluster.said();
  EXPECT_EQ(cluster.restart(four_nodes()), 1) << "by the name of the folder";
}

TEST(SessionIdentity, AnotherPathToTheSameDirectoryIsNoCopy) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  fs::create_directory_symlink(cluster.node("pfs"), cluster.node("link"));
  cluster.settings.prefix = cluster.node("link");
  EXPECT_EQ(cluster.restart(four_nodes()), 1) << cluster.said();
  cluster.go_to("pfs");
  EXPECT_EQ(cluster.restart(four_nodes()), 1) << cluster.said();
}

TEST(SessionIdentity, ADirectoryThatTookTheOthersPlaceStartsFreshAndSaysWhoseCacheThereIs) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  const RecordedId first = cluster.recorded();
  fs::remove_all(cluster.settings.prefix);
  cluster.go_to("pfs");
  EXPECT_EQ(cluster.restart(four_nodes()), 0);
  EXPECT_TRUE(cluster.said(cluster.remedy(first.id))) << cluster.said();
  EXPECT_NE(cluster.recorded().id, first.id);
  cluster.carry_out_remedy(first.id);
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

TEST(SessionIdentity, WhereTheDirectoryCannotBeReadTheCacheOfItsPathIsTaken) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.go_to("other");
  cluster.write(four_nodes(), {9});
  cluster.go_to("pfs");
  EXPECT_EQ(cluster.restart_away([](JobRank& rank) { rank.expect_written(2); }), 1)
      << cluster.said();
  EXPECT_EQ(cluster.restart(four_nodes()), 2);
  EXPECT_EQ(cluster.folders().size(), 2U) << "one for each directory";
}

/// As where a file system is not mounted.
TEST(SessionIdentity, ADirectoryThatIsNotThereNowKeepsItsCaches) {
  IdentityCluster cluster;
  fs::create_directories(cluster.node("disk/pfs"));
  fs::create_directory_symlink(cluster.node("disk"), cluster.node("mount"));
  cluster.settings.prefix = cluster.node("mount/pfs");
  cluster.write(four_nodes(), {1});
  fs::rename(cluster.node("disk"), cluster.node("aside"));
  EXPECT_EQ(cluster.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(2); }), 1);
  EXPECT_TRUE(cluster.said("continues with the caches")) << cluster.said();
  fs::rename(cluster.node("aside"), cluster.node("disk"));
  EXPECT_EQ(cluster.restart(four_nodes()), 2);
  EXPECT_EQ(cluster.folders().size(), 1U);
}

TEST(SessionIdentity, ACheckpointMadeWhileTheDirectoryCouldNotBeReadIsFound) {
  IdentityCluster cluster;
  std::atomic<bool> is_away = true;
  cluster.run_away(is_away, [](JobRank& rank) { rank.expect_written(1); });
  ASSERT_EQ(cluster.folders().size(), 1U);
  EXPECT_TRUE(cluster.folders()[0].is_unclaimed());
  EXPECT_EQ(cluster.recorded().state, RecordedId::State::none);
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  EXPECT_EQ(cluster.recorded().id, cluster.folders()[0].name_id);
  EXPECT_FALSE(cluster.folders()[0].is_unclaimed());
  cluster.move("pfs", "moved");
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

/// As another job, on other nodes, has recorded one.
TEST(SessionIdentity, ACacheBegunBeforeTheDirectorysOwnIdCouldBeReadIsItsFromThenOn) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  const RecordedId known = cluster.recorded();
  cluster.lose_all_nodes();
  std::atomic<bool> is_away = true;
  cluster.run_away(is_away, [&](JobRank& rank) {
    rank.expect_written(2);
    rank.comm.barrier();
    is_away = false;
    rank.comm.barrier();
    EXPECT_TRUE(rank.write(3, flag_checkpoint | flag_output));
  });
  ASSERT_EQ(cluster.folders().size(), 1U);
  EXPECT_NE(cluster.folders()[0].name_id, known.id);
  EXPECT_EQ(cluster.folders()[0].owner(), known.id);
  EXPECT_EQ(cluster.recorded().id, known.id);
  cluster.settings.fetch = false;
  EXPECT_EQ(cluster.restart(four_nodes()), 3);
  EXPECT_EQ(cluster.folders().size(), 1U);
}

TEST(SessionIdentity, ADirectoryThatTurnsOutToBeAnotherLeavesTheRunItsCaches) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  const RecordedId first = cluster.recorded();
  fs::rename(cluster.node("pfs"), cluster.node("aside"));
  cluster.go_to("pfs");
  const auto files = make_posix_files();
  ASSERT_TRUE(replace_prefix_id(*files, *cluster.clock, cluster.settings.prefix, PrefixId{7}));
  std::atomic<bool> is_away = true;
  cluster.run_away(is_away, [&](JobRank& rank) {
    EXPECT_TRUE(rank.session->have_restart().value_or(std::nullopt));
    rank.comm.barrier();
    is_away = false;
    rank.comm.barrier();
    EXPECT_TRUE(rank.write(2, flag_checkpoint | flag_output));
  });
  EXPECT_TRUE(cluster.said("another directory")) << cluster.said();
  EXPECT_EQ(cluster.recorded().id, PrefixId{7});
  EXPECT_EQ(cluster.folders()[0].owner(), first.id);
  EXPECT_EQ(cluster.listed(), (Names{"ckpt.2"}));
  EXPECT_EQ(cluster.restart(four_nodes()), 2) << "from what was copied";
  EXPECT_EQ(cluster.folders().size(), 2U);
}

TEST(SessionIdentity, ADamagedIdTakesNoOthersCacheAndIsWrittenAnew) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.go_to("other");
  cluster.write(four_nodes(), {9});
  const RecordedId own = cluster.recorded();
  cluster.flip(cluster.id_file());
  ASSERT_EQ(cluster.recorded().state, RecordedId::State::damaged);
  EXPECT_EQ(cluster.restart(four_nodes()), 9);
  EXPECT_TRUE(cluster.said(cluster.id_file())) << cluster.said();
  EXPECT_EQ(cluster.recorded().id, own.id);
  cluster.flip(cluster.id_file());
  cluster.move("other", "moved");
  EXPECT_EQ(cluster.restart(four_nodes()), 0) << "no cache is known to be this directory's";
  EXPECT_TRUE(cluster.said(cluster.id_file())) << cluster.said();
  EXPECT_EQ(cluster.recorded().state, RecordedId::State::known);
  EXPECT_NE(cluster.recorded().id, own.id);
}

TEST(SessionIdentity, WhereNothingCanBeWrittenInTheDirectoryItsPathFindsTheCaches) {
  IdentityCluster cluster;
  cluster.run_read_only([](JobRank& rank) { rank.expect_written(1); });
  EXPECT_TRUE(cluster.said("injected: read-only")) << cluster.said();
  cluster.run_read_only([](JobRank& rank) { EXPECT_EQ(rank.restart(), 1); });
}

TEST(SessionIdentity, NothingIsMadeInTheDirectoryButItsId) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(cluster.settings.prefix))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (Names{".cairn", "id"}));
}

}  // namespace
}  // namespace cairn
