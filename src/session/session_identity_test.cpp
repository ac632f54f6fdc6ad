// Which prefix directory a job's caches are for.
#include <array>
#include <filesystem>

#include "support/job_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

/// Nothing reaches the prefix directory but its id: what a restart finds is in the caches.
class IdentityBed : public PrefixJobBed {
 public:
  IdentityBed() {
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
  IdentityBed bed;
  bed.write(four_nodes(), {1, 2});
  bed.go_to("other");
  EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(7); }), 0);
  bed.go_to("pfs");
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  bed.go_to("other");
  EXPECT_EQ(bed.restart(four_nodes()), 7);
}

TEST(SessionIdentity, ProgramsInTwoDirectoriesRunAtTheSameTime) {
  IdentityBed bed;
  bed.go_to("other");
  const std::string other = bed.settings.prefix;
  bed.go_to("pfs");
  bed.run_well(four_nodes(), [&](JobRank& one) {
    Settings elsewhere = one.settings;
    elsewhere.prefix = other;
    JobRank two(one.comm, elsewhere, one.clock, bed.log());
    const Status ready = two.init();
    ASSERT_TRUE(ready) << ready.error().text;
    one.expect_written(1);
    two.expect_written(9);
  });
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  bed.go_to("other");
  EXPECT_EQ(bed.restart(four_nodes()), 9);
}

/// The other job records its id while this one is about to.
TEST(SessionIdentity, AJobThatComesSecondNamesItsCachesByTheIdOfTheFirst) {
  constexpr PrefixId first{0x77};
  IdentityBed bed;
  EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
    rank.hook = [&, done = false](const FileOperation& operation) mutable -> Status {
      if (operation.name == "link" && !std::exchange(done, true)) bed.carry_out_remedy(first);
      return {};
    };
    ASSERT_TRUE(rank.init());
    rank.expect_written(1);
  }));
  EXPECT_EQ(bed.recorded().id, first);
  EXPECT_TRUE(bed.job_folder("n0").ends_with(text_of(first))) << bed.job_folder("n0");
}

TEST(SessionIdentity, AMovedDirectoryKeepsItsCaches) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  bed.move("pfs", "moved");
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  bed.go_to("pfs");
  EXPECT_EQ(bed.restart(four_nodes()), 0) << "another directory at the old path";
}

TEST(SessionIdentity, ACopyThatIsUsedFirstDoesNotGetTheCaches) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  const PrefixId original = bed.recorded().id;
  bed.copy("pfs", "copy");
  bed.go_to("copy");
  EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(5); }), 0);
  EXPECT_TRUE(bed.logs(bed.node("pfs"))) << "the original is named: " << bed.log_text();
  EXPECT_TRUE(bed.logs(bed.remedy(original))) << bed.log_text();
  EXPECT_NE(bed.recorded().id, original);
  EXPECT_EQ(bed.restart(four_nodes()), 5);
  EXPECT_FALSE(bed.logs("cairn index id")) << "logged once: " << bed.log_text();
  bed.go_to("pfs");
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionIdentity, ACopyDoesNotGetTheCachesWhileItsOriginalIsAbsent) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  const PrefixId original = bed.recorded().id;
  bed.copy("pfs", "copy");
  fs::rename(bed.node("pfs"), bed.node("aside"));
  bed.go_to("copy");
  EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(5); }), 0);
  EXPECT_TRUE(bed.logs(bed.remedy(original))) << bed.log_text();
  fs::rename(bed.node("aside"), bed.node("pfs"));
  bed.go_to("pfs");
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  EXPECT_EQ(bed.recorded().id, original);
}

TEST(SessionIdentity, AnOriginalThatMovedAfterItWasCopiedKeepsItsCaches) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  bed.copy("pfs", "copy");
  bed.move("pfs", "moved");
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  bed.go_to("copy");
  EXPECT_EQ(bed.restart(four_nodes()), 0);
  bed.go_to("moved");
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionIdentity, ACopyInThePlaceOfItsOriginalGetsTheCachesAndTheOriginalDoesNot) {
  for (const bool original_first : {false, true}) {
    IdentityBed bed;
    bed.write(four_nodes(), {1});
    fs::rename(bed.node("pfs"), bed.node("aside"));
    bed.copy("aside", "pfs");
    for (const bool is_original : {original_first, !original_first}) {
      bed.go_to(is_original ? "aside" : "pfs");
      EXPECT_EQ(bed.restart(four_nodes()), is_original ? 0 : 1) << original_first;
    }
  }
}

/// It has another path and another inode, as a copy has.
TEST(SessionIdentity, ADirectoryMovedToAnotherFileSystemGetsItsCachesByTheNamedCommand) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  const PrefixId id = bed.recorded().id;
  bed.copy("pfs", "moved");
  fs::remove_all(bed.node("pfs"));
  bed.go_to("moved");
  EXPECT_EQ(bed.restart(four_nodes()), 0);
  ASSERT_TRUE(bed.logs(bed.remedy(id))) << bed.log_text();
  bed.carry_out_remedy(id);
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  EXPECT_EQ(bed.restart(four_nodes()), 1) << "and keeps them";
}

TEST(SessionIdentity, ABackupRestoredWhereTheDirectoryWasDoesNotGetTheCachesOfTheMovedOne) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  bed.copy("pfs", "backup");
  bed.move("pfs", "moved");
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  bed.move("backup", "pfs");
  EXPECT_EQ(bed.restart(four_nodes()), 0);
  bed.go_to("moved");
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionIdentity, ABackupRestoredWhereTheDirectoryWasGetsItsCaches) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  bed.copy("pfs", "backup");
  fs::remove_all(bed.node("pfs"));
  bed.move("backup", "pfs");
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionIdentity, ACopyInWhichNothingCanBeWrittenFindsItsCachesByItsPath) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  bed.copy("pfs", "copy");
  bed.go_to("copy");
  bed.run_read_only([](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 0);
    rank.expect_written(5);
  });
  bed.run_read_only([](JobRank& rank) { EXPECT_EQ(rank.restart(), 5); });
  bed.go_to("pfs");
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionIdentity, ADirectoryThatWasMovedAndCannotBeWrittenKeepsItsCachesWithAWarning) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  bed.move("pfs", "moved");
  bed.run_read_only([](JobRank& rank) { EXPECT_EQ(rank.restart(), 1); });
  EXPECT_TRUE(bed.logs(".cairn writable")) << bed.log_text();
}

TEST(SessionIdentity, ADirectoryThatGotANewIdNamesTheCachesOfTheOldOne) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  const PrefixId old = bed.recorded().id;
  fs::remove_all(bed.settings.prefix + "/.cairn");
  EXPECT_EQ(bed.restart(four_nodes()), 0);
  EXPECT_TRUE(bed.logs(bed.remedy(old))) << bed.log_text();
  EXPECT_EQ(bed.restart(four_nodes()), 0);
  EXPECT_TRUE(bed.logs(bed.remedy(old))) << "as long as it is there: " << bed.log_text();
  bed.carry_out_remedy(old);
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionIdentity, EntriesOfTheCacheThatAreNotOursAreIgnored) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  const std::string base = bed.node("n1") + "/tester/cairn.job.";
  fs::create_directory_symlink(bed.node("n0"), base + "fedcba9876543210");
  std::ofstream(base + "1111111111111111") << "a file";
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  EXPECT_TRUE(bed.logs(base + "fedcba9876543210")) << bed.log_text();
  EXPECT_TRUE(bed.logs(base + "1111111111111111")) << bed.log_text();
}

TEST(SessionIdentity, ANoteThatCannotBeWrittenIsAWarning) {
  IdentityBed bed;
  EXPECT_TRUE(bed.run(four_nodes(), [](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      const bool is_note = operation.name == "create" && operation.path.ends_with("/prefix.id.tmp");
      return is_note ? fail(Code::no_space, "injected: {}", operation.path) : Status{};
    };
    const Status ready = rank.init();
    ASSERT_TRUE(ready) << ready.error().text;
    rank.expect_written(1);
  }));
  EXPECT_TRUE(bed.logs("injected: " + bed.node("n2"))) << bed.log_text();
  EXPECT_EQ(bed.restart(four_nodes()), 1) << "by the name of the folder";
}

TEST(SessionIdentity, AnotherPathToTheSameDirectoryIsNoCopy) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  fs::create_directory_symlink(bed.node("pfs"), bed.node("link"));
  bed.settings.prefix = bed.node("link");
  EXPECT_EQ(bed.restart(four_nodes()), 1) << bed.log_text();
  bed.go_to("pfs");
  EXPECT_EQ(bed.restart(four_nodes()), 1) << bed.log_text();
}

TEST(SessionIdentity, ADirectoryThatTookTheOthersPlaceStartsFreshAndSaysWhoseCacheThereIs) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  const RecordedId first = bed.recorded();
  fs::remove_all(bed.settings.prefix);
  bed.go_to("pfs");
  EXPECT_EQ(bed.restart(four_nodes()), 0);
  EXPECT_TRUE(bed.logs(bed.remedy(first.id))) << bed.log_text();
  EXPECT_NE(bed.recorded().id, first.id);
  bed.carry_out_remedy(first.id);
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionIdentity, WhereTheDirectoryCannotBeReadTheCacheOfItsPathIsTaken) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  bed.go_to("other");
  bed.write(four_nodes(), {9});
  bed.go_to("pfs");
  EXPECT_EQ(bed.restart_away([](JobRank& rank) { rank.expect_written(2); }), 1) << bed.log_text();
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  EXPECT_EQ(bed.folders().size(), 2U) << "one for each directory";
}

/// As where a file system is not mounted.
TEST(SessionIdentity, ADirectoryThatIsNotThereNowKeepsItsCaches) {
  IdentityBed bed;
  fs::create_directories(bed.node("disk/pfs"));
  fs::create_directory_symlink(bed.node("disk"), bed.node("mount"));
  bed.settings.prefix = bed.node("mount/pfs");
  bed.write(four_nodes(), {1});
  fs::rename(bed.node("disk"), bed.node("aside"));
  EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(2); }), 1);
  EXPECT_TRUE(bed.logs("continues with the caches")) << bed.log_text();
  fs::rename(bed.node("aside"), bed.node("disk"));
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  EXPECT_EQ(bed.folders().size(), 1U);
}

TEST(SessionIdentity, ACheckpointMadeWhileTheDirectoryCouldNotBeReadIsFound) {
  IdentityBed bed;
  std::atomic<bool> is_away = true;
  bed.run_away(is_away, [](JobRank& rank) { rank.expect_written(1); });
  ASSERT_EQ(bed.folders().size(), 1U);
  EXPECT_TRUE(bed.folders()[0].is_unclaimed());
  EXPECT_EQ(bed.recorded().state, RecordedId::State::none);
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  EXPECT_EQ(bed.recorded().id, bed.folders()[0].name_id);
  EXPECT_FALSE(bed.folders()[0].is_unclaimed());
  bed.move("pfs", "moved");
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

/// As another job, on other nodes, has recorded one.
TEST(SessionIdentity, ACacheBegunBeforeTheDirectorysOwnIdCouldBeReadIsItsFromThenOn) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  const RecordedId known = bed.recorded();
  bed.lose_all_nodes();
  std::atomic<bool> is_away = true;
  bed.run_away(is_away, [&](JobRank& rank) {
    rank.expect_written(2);
    rank.comm.barrier();
    is_away = false;
    rank.comm.barrier();
    EXPECT_TRUE(rank.write(3, flag_checkpoint | flag_output));
  });
  ASSERT_EQ(bed.folders().size(), 1U);
  EXPECT_NE(bed.folders()[0].name_id, known.id);
  EXPECT_EQ(bed.folders()[0].owner(), known.id);
  EXPECT_EQ(bed.recorded().id, known.id);
  bed.settings.fetch = false;
  EXPECT_EQ(bed.restart(four_nodes()), 3);
  EXPECT_EQ(bed.folders().size(), 1U);
}

TEST(SessionIdentity, ADirectoryThatTurnsOutToBeAnotherLeavesTheRunItsCaches) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  const RecordedId first = bed.recorded();
  fs::rename(bed.node("pfs"), bed.node("aside"));
  bed.go_to("pfs");
  const auto files = make_posix_files();
  ASSERT_TRUE(replace_prefix_id(*files, *bed.clock, bed.settings.prefix, PrefixId{7}));
  std::atomic<bool> is_away = true;
  bed.run_away(is_away, [&](JobRank& rank) {
    EXPECT_TRUE(rank.session->have_restart().value_or(std::nullopt));
    rank.comm.barrier();
    is_away = false;
    rank.comm.barrier();
    EXPECT_TRUE(rank.write(2, flag_checkpoint | flag_output));
  });
  EXPECT_TRUE(bed.logs("another directory")) << bed.log_text();
  EXPECT_EQ(bed.recorded().id, PrefixId{7});
  EXPECT_EQ(bed.folders()[0].owner(), first.id);
  EXPECT_EQ(bed.listed(), (Names{"ckpt.2"}));
  EXPECT_EQ(bed.restart(four_nodes()), 2) << "from what was copied";
  EXPECT_EQ(bed.folders().size(), 2U);
}

TEST(SessionIdentity, ADamagedIdTakesNoOthersCacheAndIsWrittenAnew) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  bed.go_to("other");
  bed.write(four_nodes(), {9});
  const RecordedId own = bed.recorded();
  flip_bit(bed.id_file());
  ASSERT_EQ(bed.recorded().state, RecordedId::State::damaged);
  EXPECT_EQ(bed.restart(four_nodes()), 9);
  EXPECT_TRUE(bed.logs(bed.id_file())) << bed.log_text();
  EXPECT_EQ(bed.recorded().id, own.id);
  flip_bit(bed.id_file());
  bed.move("other", "moved");
  EXPECT_EQ(bed.restart(four_nodes()), 0) << "no cache is known to be this directory's";
  EXPECT_TRUE(bed.logs(bed.id_file())) << bed.log_text();
  EXPECT_EQ(bed.recorded().state, RecordedId::State::known);
  EXPECT_NE(bed.recorded().id, own.id);
}

TEST(SessionIdentity, WhereNothingCanBeWrittenInTheDirectoryItsPathFindsTheCaches) {
  IdentityBed bed;
  bed.run_read_only([](JobRank& rank) { rank.expect_written(1); });
  EXPECT_TRUE(bed.logs("injected: read-only")) << bed.log_text();
  bed.run_read_only([](JobRank& rank) { EXPECT_EQ(rank.restart(), 1); });
}

TEST(SessionIdentity, NothingIsMadeInTheDirectoryButItsId) {
  IdentityBed bed;
  bed.write(four_nodes(), {1});
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(bed.settings.prefix))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (Names{".cairn", "id"}));
}

}  // namespace
}  // namespace cairn
