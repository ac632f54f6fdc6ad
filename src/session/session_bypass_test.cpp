// The program writes straight into the prefix directory, and restarts from there.
#include <filesystem>

#include "session/prefix_cluster.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class BypassCluster : public PrefixCluster {
 public:
  BypassCluster() {
    settings.flush_interval = 0;
    settings.checkpoints[0].bypass = true;
  }

  /// As expect_own_files(), and nothing of it is in a cache.
  void expect_in_place(int dataset) const {
    expect_own_files(dataset);
    for (const std::string node : {"n0", "n1", "n2", "n3"}) EXPECT_EQ(parts(node), Names());
  }

  /// Checkpoints with odd numbers are cached.
  void cache_every_other() {
    CheckpointSettings cached = settings.checkpoints[0];
    cached.bypass = false;
    settings.checkpoints[0].interval = 2;
    settings.checkpoints.push_back(cached);
  }

  std::string of_all() const { return settings.prefix + "/all/state"; }
};

/// Every rank writes its stripes of one file; 10,000 bytes in all.
Status write_shared(JobRank& rank, const std::string& name, char content) {
  CAIRN_TRY(rank.session->start_output("shared." + std::string(1, content), flag_checkpoint));
  CAIRN_ASSIGN(const std::string path, rank.session->route_file(name));
  if (rank.number() == 0) CAIRN_TRY(rank.files->create(path, 0640));
  rank.comm.barrier();
  CAIRN_ASSIGN(auto out, rank.files->open_for_update(path));
  const std::string stripe(250, content);
  for (std::uint64_t i = 0; i < 5; ++i)
    CAIRN_TRY(out->write_at((i * 8 + static_cast<std::uint64_t>(rank.number())) * 250,
                            std::as_bytes(std::span(stripe))));
  out.reset();
  return rank.session->complete_output(true);
}

TEST(SessionBypass, FilesAreWhereTheProgramSaysAndCountAtOnce) {
  BypassCluster cluster;
  cluster.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    ASSERT_TRUE(rank.session->start_checkpoint());
    const auto path = rank.session->route_file(rank.file_name(0, 2));
    ASSERT_TRUE(path) << path.error().text;
    EXPECT_EQ(*path, cluster.file(2, rank.number()));
    EXPECT_TRUE(rank.write_files(2));
    EXPECT_TRUE(rank.session->complete_checkpoint(true));
  });
  EXPECT_EQ(cluster.listed(), Names({"scr.dataset.2", "ckpt.1"}));
  cluster.expect_in_place(1);
  EXPECT_EQ(cluster.restart(four_nodes(),
                            [&](JobRank& rank) {
                              EXPECT_EQ(rank.session->route_loaded(rank.file_name(1, 2)),
                                        rank.file_name(1, 2));
                              rank.expect_written(3);
                              EXPECT_TRUE(rank.session->finalize());
                            }),
            2);
  EXPECT_TRUE(cluster.said("is read directly")) << cluster.said();
  cluster.lose_all_nodes();
  EXPECT_EQ(cluster.restart(four_nodes()), 3);
  cluster.expect_in_place(3);
}

TEST(SessionBypass, NothingIsReadThroughALinkInThePlaceOfAFolder) {
  BypassCluster cluster;
  cluster.write(four_nodes(), {1, 2});
  const std::string folder = cluster.settings.prefix + "/ckpt.2";
  fs::rename(folder, cluster.node("archive"));
  fs::create_directory_symlink(cluster.node("archive"), folder);
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  EXPECT_TRUE(cluster.said(folder + " is a link")) << cluster.said();
}

TEST(SessionBypass, DamageIsFoundAndTheNextOlderTaken) {
  const auto write = [](const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  };
  const std::vector<std::function<void(const BypassCluster&, const std::string&)>> damages = {
      [](const auto& cluster, const auto& path) { cluster.flip(path); },
      [](const auto&, const auto& path) { fs::resize_file(path, fs::file_size(path) - 1); },
      [](const auto&, const auto& path) { fs::resize_file(path, fs::file_size(path) + 1); },
      [](const auto&, const auto& path) { fs::remove(path); },
      [](const auto&, const auto& path) { fs::remove(path), fs::create_directory(path); },
      [](const auto& cluster, const auto& path) {
        fs::remove(path), fs::create_symlink(cluster.file(1, 5), path);
      },
      [&](const auto& cluster, const auto& path) {
        write(path, read_all(cluster.file(1, 5)).substr(0, 1) + read_all(path).substr(1));
      }};
  for (std::size_t i = 0; i < damages.size(); ++i) {
    BypassCluster cluster;
    cluster.write(four_nodes(), {1, 2});
    const std::string path = cluster.file(2, 5);
    damages[i](cluster, path);
    ASSERT_EQ(cluster.restart(four_nodes()), 1) << i;
    EXPECT_TRUE(cluster.said("ckpt.2/rank 5.0")) << i << cluster.said();
    ASSERT_EQ(cluster.restart(four_nodes()), 1) << i;
    EXPECT_FALSE(cluster.said("cannot be used")) << "it is known to have failed";
  }
}

TEST(SessionBypass, WhatIsNotValidDoesNotCountAndIsLeftAsItIs) {
  BypassCluster cluster;
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1);
    ASSERT_TRUE(rank.session->start_output("ckpt.2", flag_checkpoint));
    EXPECT_TRUE(rank.write_files(2));
    const Status invalid = rank.session->complete_output(rank.number() != 3);
    ASSERT_FALSE(invalid);
    EXPECT_EQ(invalid.error().code, Code::invalid);
    ASSERT_TRUE(rank.session->start_output("ckpt.3", flag_checkpoint));
    EXPECT_TRUE(rank.write_files(3));
    EXPECT_TRUE(rank.session->route_file(rank.settings.prefix + "/never"));
    const Status missing = rank.session->complete_output(true);
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().text.find("SCR_Route_file for the file never"), std::string::npos);
  });
  EXPECT_TRUE(cluster.said("dataset 2 (ckpt.2) is incomplete")) << cluster.said();
  cluster.expect_in_place(2);
  EXPECT_EQ(cluster.listed(), Names({"ckpt.1"}));
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

TEST(SessionBypass, WhatLeadsOutOfThePrefixDirectoryIsRefused) {
  BypassCluster cluster;
  const std::string elsewhere = cluster.node("elsewhere");
  fs::create_directories(elsewhere);
  std::ofstream(elsewhere + "/victim") << "kept";
  fs::create_directory_symlink(elsewhere, cluster.settings.prefix + "/way");
  fs::create_symlink(elsewhere + "/victim", cluster.settings.prefix + "/file");
  cluster.run_well(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    for (const std::string name :
         {"/way/new", "/way/deep/new", "/file", "/.cairn/owner", "/.cairn"})
      EXPECT_FALSE(rank.session->route_file(cluster.settings.prefix + name)) << name;
    EXPECT_FALSE(rank.session->route_file(elsewhere + "/victim"));
    EXPECT_FALSE(rank.session->complete_checkpoint(true)) << "files of it are missing";
  });
  EXPECT_EQ(read_all(elsewhere + "/victim"), "kept");
  EXPECT_EQ(std::distance(fs::directory_iterator(elsewhere), {}), 1);
}

TEST(SessionBypass, AllRanksMayShareAFile) {
  BypassCluster cluster;
  cluster.run_well(four_nodes(), [&](JobRank& rank) {
    for (const char content : {'a', 'b'}) {
      const std::string name = cluster.settings.prefix + "/all/state." + content;
      const Status written = write_shared(rank, name, content);
      ASSERT_TRUE(written) << written.error().text;
    }
  });
  const auto restart = [&] {
    std::string content;
    cluster.run_well(four_nodes(), [&](JobRank& rank) {
      const auto name = rank.session->have_restart();
      ASSERT_TRUE(name && *name && rank.session->start_restart());
      const auto path = rank.session->route_file(
          fmt::format("{}/all/state.{}", rank.settings.prefix, (*name)->back()));
      ASSERT_TRUE(path) << path.error().text;
      if (rank.number() == 7) content = read_all(*path);
      EXPECT_TRUE(rank.session->complete_restart(true));
    });
    return content;
  };
  EXPECT_EQ(restart(), std::string(10'000, 'b'));
  std::fstream(cluster.settings.prefix + "/all/state.b", std::ios::in | std::ios::out)
      .seekp(9'999)
      .put('x');
  EXPECT_EQ(restart(), std::string(10'000, 'a'));
}

TEST(SessionBypass, WhatIsWrittenOverIsNotOfferedAnyMore) {
  BypassCluster cluster;
  cluster.run_well(four_nodes(), [&](JobRank& rank) {
    for (const char content : {'a', 'b'}) {
      const Status written = write_shared(rank, cluster.of_all(), content);
      ASSERT_TRUE(written) << written.error().text;
    }
    ASSERT_TRUE(rank.session->start_output("shared.c", flag_checkpoint));
    EXPECT_TRUE(rank.session->route_file(cluster.of_all()));
    if (rank.number() == 0) std::ofstream(cluster.of_all()) << "half";
    EXPECT_FALSE(rank.session->complete_output(rank.number() != 4));
  });
  cluster.run_well(four_nodes(),
                   [](JobRank& rank) { EXPECT_FALSE(rank.session->have_restart().value()); });
  EXPECT_TRUE(cluster.said("STARTS FROM SCRATCH")) << cluster.said();
}

TEST(SessionBypass, LevelsMayBypassAndNotAndTheNewestIsTaken) {
  BypassCluster cluster;
  cluster.cache_every_other();
  cluster.settings.flush_interval = 10;
  cluster.write_and_finalize({1, 2});
  EXPECT_EQ(cluster.listed(), Names({"ckpt.2"})) << "1 is older: nobody needs it there";
  EXPECT_EQ(cluster.restart(four_nodes()), 2) << "the cache has 1";
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 2);
    rank.expect_written(3);
  });
  EXPECT_EQ(cluster.restart(four_nodes()), 3) << "from the cache";
  EXPECT_FALSE(cluster.said("is read directly")) << cluster.said();
  cluster.lose_all_nodes();
  EXPECT_EQ(cluster.restart(four_nodes()), 2);
}

/// Its files are staged still; they must not be given the names of what is about to be written.
TEST(SessionBypass, AnOlderDatasetGetsItsNamesBeforeTheProgramWrites) {
  BypassCluster cluster;
  cluster.cache_every_other();
  cluster.settings.flush_interval = 1;
  const auto write = [](JobRank& rank, const std::string& content) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    const auto path =
        rank.session->route_file(fmt::format("{}/r{}", rank.settings.prefix, rank.number()));
    ASSERT_TRUE(path) << path.error().text;
    std::ofstream(*path) << content;
    EXPECT_TRUE(rank.session->complete_checkpoint(true));
  };
  cluster.run_well(four_nodes(), [&](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      const bool naming =
          operation.name == "rename" && operation.path.find("/.cairn.") != std::string_view::npos;
      return naming ? fail(Code::io, "injected: cannot rename {}", operation.path) : Status{};
    };
    write(rank, "older");
    rank.hook = nullptr;
    write(rank, "newer");
  });
  cluster.lose_all_nodes();
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart()->value_or("none"), "scr.dataset.2");
    EXPECT_EQ(read_all(fmt::format("{}/r{}", rank.settings.prefix, rank.number())), "newer");
  });
}

TEST(SessionBypass, WhatWasWrittenInPlaceIsReadInPlaceAfterwards) {
  BypassCluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.settings.checkpoints[0].bypass = false;
  EXPECT_EQ(cluster.restart(four_nodes(),
                            [](JobRank& rank) {
                              rank.expect_written(2);
                              rank.expect_written(3, flag_output);
                            }),
            1);
  EXPECT_EQ(cluster.restart(four_nodes()), 2) << "from the cache";
  cluster.settings.checkpoints[0].bypass = true;
  EXPECT_EQ(cluster.restart(four_nodes()), 2) << "still from the cache";
}

TEST(SessionBypass, ACachedCheckpointKeepsItsProtection) {
  BypassCluster cluster;
  cluster.settings.checkpoints[0].bypass = false;
  cluster.write(four_nodes(), {1});
  cluster.settings.checkpoints[0].bypass = true;
  const Nodes crowded = {"n0", "n1", "n0", "n1", "n2", "n3", "n2", "n3"};
  EXPECT_EQ(cluster.restart(crowded), 1);
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  cluster.lose("n1");
  EXPECT_EQ(cluster.restart(four_nodes()), 1) << cluster.said();
}

TEST(SessionBypass, NoSpaceIsNeededInACacheThatIsBypassed) {
  BypassCluster cluster;
  cluster.settings.checkpoint_bytes = std::uint64_t{1} << 60;
  cluster.run_well(four_nodes(), [](JobRank&) {});
  EXPECT_FALSE(cluster.said("too little space")) << cluster.said();
  cluster.settings.checkpoints[0].bypass = false;
  cluster.run_well(four_nodes(), [](JobRank&) {});
  EXPECT_TRUE(cluster.said("too little space")) << cluster.said();
}

TEST(SessionBypass, TheWindowDropAndDeleteConcernThemToo) {
  BypassCluster cluster;
  cluster.settings.prefix_size = 3;
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1, flag_output);
    for (const int dataset : {2, 3, 4, 5, 6}) rank.expect_written(dataset);
  });
  EXPECT_EQ(cluster.listed(), Names({"ckpt.6", "ckpt.5", "ckpt.4", "ckpt.1"}));
  EXPECT_FALSE(fs::exists(cluster.settings.prefix + "/ckpt.3"));
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.6");
    EXPECT_TRUE(rank.session->drop("ckpt.6"));
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.5");
    EXPECT_TRUE(rank.session->remove("ckpt.5"));
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.4");
  });
  EXPECT_FALSE(fs::exists(cluster.settings.prefix + "/ckpt.5"));
  cluster.expect_in_place(6);
}

TEST(SessionBypass, AnOutputDoesNotHideTheRestart) {
  BypassCluster cluster;
  cluster.write(four_nodes(), {1});
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.1");
    rank.expect_written(2, flag_output);
    EXPECT_EQ(rank.restart(), 1);
  });
  EXPECT_EQ(cluster.listed(), Names({"ckpt.2", "ckpt.1"}));
}

TEST(SessionBypass, OneThatTheProgramRejectsIsNotOfferedAgain) {
  BypassCluster cluster;
  cluster.write(four_nodes(), {1, 2});
  cluster.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
    EXPECT_TRUE(rank.session->start_restart());
    EXPECT_FALSE(rank.session->complete_restart(rank.number() != 2));
    EXPECT_EQ(rank.restart(), 1);
  });
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
  cluster.expect_in_place(2);
}

TEST(SessionBypass, RestartsThatDiePutItInQuarantine) {
  BypassCluster cluster;
  cluster.write(four_nodes(), {1, 2});
  for (int attempt = 0; attempt < 3; ++attempt)
    cluster.run_well(four_nodes(), [](JobRank& rank) {
      EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
      EXPECT_TRUE(rank.session->start_restart());
    });
  EXPECT_EQ(cluster.restart(four_nodes()), 1);
}

TEST(SessionBypass, NothingIsWrittenIntoTheDirectoryOfALivingJob) {
  BypassCluster cluster;
  const auto files = make_posix_files();
  std::unique_ptr<Background> background = make_background_thread();
  std::unique_ptr<Repeated> heartbeat;
  cluster.run_well(four_nodes(), [&](JobRank& rank) {
    if (rank.number() == 0) {
      const OwnerRecord other{0, {1, 2}, "other", "tester", "n9", 1, 1, 0};
      auto living = Keeper::take_over(*files, *cluster.clock, {rank.settings.prefix}, other);
      ASSERT_TRUE(living);
      heartbeat = background->repeat(100'000, living->heartbeat());
    }
    const Status started = rank.session->start_checkpoint();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::busy) << started.error().text;
  });
}

/// Of all calls that one rank makes, the run dies before one.
class SessionBypassCrash : public ::testing::TestWithParam<int> {};

TEST_P(SessionBypassCrash, LosesNothingThatWasComplete) {
  constexpr std::uint64_t stride = sanitized ? 7 : 1;
  bool crashed = true;
  for (std::uint64_t step = 0; crashed; step += stride) {
    BypassCluster cluster;
    cluster.write(four_nodes(), {1});
    std::atomic<bool> complete = false;
    crashed = !cluster.run(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.init());
      EXPECT_EQ(rank.restart(), 1);
      if (rank.number() == GetParam()) rank.hook = crash_after(static_cast<int>(step));
      if (rank.write(2)) complete = true;
      rank.hook = nullptr;
    });
    const int from = cluster.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(3); });
    ASSERT_TRUE(from == 2 || (from == 1 && !complete)) << step << " gave " << from;
    cluster.expect_in_place(from);
    ASSERT_EQ(cluster.restart(four_nodes()), 3) << step;
    for (const auto& left : fs::directory_iterator(cluster.settings.prefix + "/.cairn"))
      ASSERT_FALSE(left.path().filename().string().starts_with("closed.")) << left.path();
    ASSERT_TRUE(crashed || step > 5) << "a bypassed checkpoint is more than a few operations";
  }
}

TEST_P(SessionBypassCrash, AnErrorIsToldToAllAndHarmsNothing) {
  constexpr std::uint64_t stride = sanitized ? 7 : 1;
  std::string failed = "at first";
  for (std::uint64_t step = 0; !failed.empty(); step += stride) {
    BypassCluster cluster;
    cluster.write(four_nodes(), {1});
    failed.clear();
    std::array<int, 8> complete{};
    cluster.run_well(four_nodes(), [&](JobRank& rank) {
      EXPECT_EQ(rank.restart(), 1);
      if (rank.number() == GetParam())
        rank.hook = fail_after(static_cast<int>(step), Code::no_space, failed);
      complete[static_cast<std::size_t>(rank.number())] = rank.write(2) ? 1 : 0;
      rank.hook = nullptr;
    });
    ASSERT_EQ(std::count(complete.begin(), complete.end(), complete[0]), 8) << step;
    ASSERT_EQ(cluster.restart(four_nodes()), complete[0] == 1 ? 2 : 1) << step << " " << failed;
  }
}

INSTANTIATE_TEST_SUITE_P(Session, SessionBypassCrash, ::testing::Values(0, 5));

}  // namespace
}  // namespace cairn
