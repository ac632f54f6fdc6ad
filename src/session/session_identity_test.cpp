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
  std::string id_file() const { return settings.prefix + "/.cairn/id"; }
  RecordedId recorded() const {
    const auto files = make_posix_files();
    return read_prefix_id(*files, settings.prefix);
  }
  std::vector<JobFolder> folders(const std::string& name = "n0") const {
    const auto files = make_posix_files();
    std::vector<std::string> unreadable;
    return find_job_folders(*files, node(name), settings, unreadable);
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

TEST(SessionIdentity, AMovedDirectoryKeepsItsCaches) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.move("pfs", "moved");
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  cluster.go_to("pfs");
  EXPECT_EQ(cluster.restart(four_nodes()), 0) << "another directory at the old path";
}

TEST(SessionIdentity, ACopyOfADirectoryDoesNotGetItsCaches) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  const RecordedId original = cluster.recorded();
  fs::copy(cluster.node("pfs"), cluster.node("copy"), fs::copy_options::recursive);
  cluster.go_to("copy");
  EXPECT_EQ(cluster.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(5); }), 0);
  EXPECT_TRUE(cluster.said("is a copy of " + cluster.node("pfs"))) << cluster.said();
  EXPECT_NE(cluster.recorded().id, original.id);
  EXPECT_EQ(cluster.restart(four_nodes()), 5);
  cluster.go_to("pfs");
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

TEST(SessionIdentity, AnotherPathToTheSameDirectoryIsNoCopy) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  fs::create_directory_symlink(cluster.node("pfs"), cluster.node("link"));
  cluster.settings.prefix = cluster.node("link");
  EXPECT_EQ(cluster.restart(four_nodes()), 1) << cluster.said();
}

TEST(SessionIdentity, ADirectoryThatTookTheOthersPlaceStartsFreshAndSaysWhoseCacheThereIs) {
  IdentityCluster cluster;
  cluster.write(four_nodes(), {1});
  const RecordedId first = cluster.recorded();
  fs::remove_all(cluster.settings.prefix);
  cluster.go_to("pfs");
  EXPECT_EQ(cluster.restart(four_nodes()), 0);
  EXPECT_TRUE(cluster.said("cairn index id " + text_of(first.id))) << cluster.said();
  EXPECT_NE(cluster.recorded().id, first.id);
  // What the message says:
  const auto files = make_posix_files();
  ASSERT_TRUE(replace_prefix_id(*files, *cluster.clock, cluster.settings.prefix, first.id));
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
  EXPECT_TRUE(cluster.said("goes on with the caches")) << cluster.said();
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
  const auto read_only = [&](JobRank& rank) {
    rank.hook = [&](const FileOperation& operation) -> Status {
      constexpr std::array changing = {"create", "link", "lock", "make_folder", "make_new_folder"};
      const bool changes =
          std::find(changing.begin(), changing.end(), operation.name) != changing.end();
      if (!changes || !operation.path.starts_with(cluster.settings.prefix)) return {};
      return fail(Code::io, "injected: read-only: {} {}", operation.name, operation.path);
    };
    const Status ready = rank.init();
    ASSERT_TRUE(ready) << ready.error().text;
  };
  EXPECT_TRUE(cluster.run(four_nodes(), [&](JobRank& rank) {
    read_only(rank);
    rank.expect_written(1);
  }));
  EXPECT_TRUE(cluster.said("injected: read-only")) << cluster.said();
  EXPECT_TRUE(cluster.run(four_nodes(), [&](JobRank& rank) {
    read_only(rank);
    EXPECT_EQ(rank.restart(), 1);
  }));
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
