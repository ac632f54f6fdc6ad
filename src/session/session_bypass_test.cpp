// The program writes straight into the prefix directory, and restarts from there.
#include <filesystem>

#include "support/every_death.hpp"
#include "support/job_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class BypassBed : public PrefixJobBed {
 public:
  BypassBed() {
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
  BypassBed bed;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    ASSERT_TRUE(rank.session->start_checkpoint());
    const auto path = rank.session->route_file(rank.file_name(0, 2));
    ASSERT_TRUE(path) << path.error().text;
    EXPECT_EQ(*path, bed.file(2, rank.number()));
    EXPECT_TRUE(rank.write_files(2));
    EXPECT_TRUE(rank.session->complete_checkpoint(true));
  });
  EXPECT_EQ(bed.listed(), Names({"scr.dataset.2", "ckpt.1"}));
  bed.expect_in_place(1);
  EXPECT_EQ(bed.restart(four_nodes(),
                        [&](JobRank& rank) {
                          EXPECT_EQ(rank.session->route_loaded(rank.file_name(1, 2)),
                                    rank.file_name(1, 2));
                          rank.expect_written(3);
                          EXPECT_TRUE(rank.session->finalize());
                        }),
            2);
  EXPECT_TRUE(bed.logs("is read directly")) << bed.log_text();
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 3);
  bed.expect_in_place(3);
}

TEST(SessionBypass, NothingIsReadThroughALinkInThePlaceOfAFolder) {
  BypassBed bed;
  bed.write(four_nodes(), {1, 2});
  const std::string folder = bed.settings.prefix + "/ckpt.2";
  fs::rename(folder, bed.node("archive"));
  fs::create_directory_symlink(bed.node("archive"), folder);
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  EXPECT_TRUE(bed.logs(folder + " is a link")) << bed.log_text();
}

TEST(SessionBypass, DamageIsFoundAndTheNextOlderTaken) {
  const auto write = [](const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  };
  const std::vector<std::function<void(const BypassBed&, const std::string&)>> damages = {
      [](const auto&, const auto& path) { flip_bit(path); },
      [](const auto&, const auto& path) { fs::resize_file(path, fs::file_size(path) - 1); },
      [](const auto&, const auto& path) { fs::resize_file(path, fs::file_size(path) + 1); },
      [](const auto&, const auto& path) { fs::remove(path); },
      [](const auto&, const auto& path) { fs::remove(path), fs::create_directory(path); },
      [](const auto& bed, const auto& path) {
        fs::remove(path), fs::create_symlink(bed.file(1, 5), path);
      },
      [&](const auto& bed, const auto& path) {
        write(path, read_all(bed.file(1, 5)).substr(0, 1) + read_all(path).substr(1));
      }};
  for (std::size_t i = 0; i < damages.size(); ++i) {
    BypassBed bed;
    bed.write(four_nodes(), {1, 2});
    const std::string path = bed.file(2, 5);
    damages[i](bed, path);
    ASSERT_EQ(bed.restart(four_nodes()), 1) << i;
    EXPECT_TRUE(bed.logs("ckpt.2/rank 5.0")) << i << bed.log_text();
    ASSERT_EQ(bed.restart(four_nodes()), 1) << i;
    EXPECT_FALSE(bed.logs("cannot be used")) << "it is known to have failed";
  }
}

TEST(SessionBypass, WhatIsNotValidDoesNotCountAndIsLeftAsItIs) {
  BypassBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
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
  EXPECT_TRUE(bed.logs("dataset 2 (ckpt.2) is incomplete")) << bed.log_text();
  bed.expect_in_place(2);
  EXPECT_EQ(bed.listed(), Names({"ckpt.1"}));
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionBypass, WhatLeadsOutOfThePrefixDirectoryIsRefused) {
  BypassBed bed;
  const std::string elsewhere = bed.node("elsewhere");
  fs::create_directories(elsewhere);
  std::ofstream(elsewhere + "/victim") << "kept";
  fs::create_directory_symlink(elsewhere, bed.settings.prefix + "/way");
  fs::create_symlink(elsewhere + "/victim", bed.settings.prefix + "/file");
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    for (const std::string name :
         {"/way/new", "/way/deep/new", "/file", "/.cairn/owner", "/.cairn"})
      EXPECT_FALSE(rank.session->route_file(bed.settings.prefix + name)) << name;
    EXPECT_FALSE(rank.session->route_file(elsewhere + "/victim"));
    EXPECT_FALSE(rank.session->complete_checkpoint(true)) << "files of it are missing";
  });
  EXPECT_EQ(read_all(elsewhere + "/victim"), "kept");
  EXPECT_EQ(std::distance(fs::directory_iterator(elsewhere), {}), 1);
}

TEST(SessionBypass, AllRanksMayShareAFile) {
  BypassBed bed;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    for (const char content : {'a', 'b'}) {
      const std::string name = bed.settings.prefix + "/all/state." + content;
      const Status written = write_shared(rank, name, content);
      ASSERT_TRUE(written) << written.error().text;
    }
  });
  const auto restart = [&] {
    std::string content;
    bed.run_well(four_nodes(), [&](JobRank& rank) {
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
  std::fstream(bed.settings.prefix + "/all/state.b", std::ios::in | std::ios::out)
      .seekp(9'999)
      .put('x');
  EXPECT_EQ(restart(), std::string(10'000, 'a'));
}

TEST(SessionBypass, WhatIsWrittenOverIsNotOfferedAnyMore) {
  BypassBed bed;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    for (const char content : {'a', 'b'}) {
      const Status written = write_shared(rank, bed.of_all(), content);
      ASSERT_TRUE(written) << written.error().text;
    }
    ASSERT_TRUE(rank.session->start_output("shared.c", flag_checkpoint));
    EXPECT_TRUE(rank.session->route_file(bed.of_all()));
    if (rank.number() == 0) std::ofstream(bed.of_all()) << "half";
    EXPECT_FALSE(rank.session->complete_output(rank.number() != 4));
  });
  bed.run_well(four_nodes(),
               [](JobRank& rank) { EXPECT_FALSE(rank.session->have_restart().value()); });
  EXPECT_TRUE(bed.logs("STARTS FROM SCRATCH")) << bed.log_text();
}

TEST(SessionBypass, LevelsMayBypassAndNotAndTheNewestIsTaken) {
  BypassBed bed;
  bed.cache_every_other();
  bed.settings.flush_interval = 10;
  bed.write_and_finalize({1, 2});
  EXPECT_EQ(bed.listed(), Names({"ckpt.2"})) << "1 is older: no run needs it there";
  EXPECT_EQ(bed.restart(four_nodes()), 2) << "the cache has 1";
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 2);
    rank.expect_written(3);
  });
  EXPECT_EQ(bed.restart(four_nodes()), 3) << "from the cache";
  EXPECT_FALSE(bed.logs("is read directly")) << bed.log_text();
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

/// Its files are staged still; they must not be given the names of what is about to be written.
TEST(SessionBypass, AnOlderDatasetGetsItsNamesBeforeTheProgramWrites) {
  BypassBed bed;
  bed.cache_every_other();
  bed.settings.flush_interval = 1;
  const auto write = [](JobRank& rank, const std::string& content) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    const auto path =
        rank.session->route_file(fmt::format("{}/r{}", rank.settings.prefix, rank.number()));
    ASSERT_TRUE(path) << path.error().text;
    std::ofstream(*path) << content;
    EXPECT_TRUE(rank.session->complete_checkpoint(true));
  };
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      const bool naming =
          operation.name == "rename" && operation.path.find("/.cairn.") != std::string_view::npos;
      return naming ? fail(Code::io, "injected: cannot rename {}", operation.path) : Status{};
    };
    write(rank, "older");
    rank.hook = nullptr;
    write(rank, "newer");
  });
  bed.lose_all_nodes();
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart()->value_or("none"), "scr.dataset.2");
    EXPECT_EQ(read_all(fmt::format("{}/r{}", rank.settings.prefix, rank.number())), "newer");
  });
}

TEST(SessionBypass, WhatWasWrittenInPlaceIsReadInPlaceAfterwards) {
  BypassBed bed;
  bed.write(four_nodes(), {1});
  bed.settings.checkpoints[0].bypass = false;
  EXPECT_EQ(bed.restart(four_nodes(),
                        [](JobRank& rank) {
                          rank.expect_written(2);
                          rank.expect_written(3, flag_output);
                        }),
            1);
  EXPECT_EQ(bed.restart(four_nodes()), 2) << "from the cache";
  bed.settings.checkpoints[0].bypass = true;
  EXPECT_EQ(bed.restart(four_nodes()), 2) << "still from the cache";
}

TEST(SessionBypass, ACachedCheckpointKeepsItsProtection) {
  BypassBed bed;
  bed.settings.checkpoints[0].bypass = false;
  bed.write(four_nodes(), {1});
  bed.settings.checkpoints[0].bypass = true;
  const Nodes crowded = {"n0", "n1", "n0", "n1", "n2", "n3", "n2", "n3"};
  EXPECT_EQ(bed.restart(crowded), 1);
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  bed.lose("n1");
  EXPECT_EQ(bed.restart(four_nodes()), 1) << bed.log_text();
}

TEST(SessionBypass, NoSpaceIsNeededInACacheThatIsBypassed) {
  BypassBed bed;
  bed.settings.checkpoint_bytes = std::uint64_t{1} << 60;
  bed.run_well(four_nodes(), [](JobRank&) {});
  EXPECT_FALSE(bed.logs("too little space")) << bed.log_text();
  bed.settings.checkpoints[0].bypass = false;
  bed.run_well(four_nodes(), [](JobRank&) {});
  EXPECT_TRUE(bed.logs("too little space")) << bed.log_text();
}

TEST(SessionBypass, TheWindowDropAndDeleteConcernThemToo) {
  BypassBed bed;
  bed.settings.prefix_size = 3;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1, flag_output);
    for (const int dataset : {2, 3, 4, 5, 6}) rank.expect_written(dataset);
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.6", "ckpt.5", "ckpt.4", "ckpt.1"}));
  EXPECT_FALSE(fs::exists(bed.settings.prefix + "/ckpt.3"));
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.6");
    EXPECT_TRUE(rank.session->datasets().drop("ckpt.6"));
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.5");
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.5"));
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.4");
  });
  EXPECT_FALSE(fs::exists(bed.settings.prefix + "/ckpt.5"));
  bed.expect_in_place(6);
}

TEST(SessionBypass, AnOutputDoesNotHideTheRestart) {
  BypassBed bed;
  bed.write(four_nodes(), {1});
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.1");
    rank.expect_written(2, flag_output);
    EXPECT_EQ(rank.restart(), 1);
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.2", "ckpt.1"}));
}

TEST(SessionBypass, OneThatTheProgramRejectsIsNotOfferedAgain) {
  BypassBed bed;
  bed.write(four_nodes(), {1, 2});
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
    EXPECT_TRUE(rank.session->start_restart());
    EXPECT_FALSE(rank.session->complete_restart(rank.number() != 2));
    EXPECT_EQ(rank.restart(), 1);
  });
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  bed.expect_in_place(2);
}

TEST(SessionBypass, RestartsThatDiePutItInQuarantine) {
  BypassBed bed;
  bed.write(four_nodes(), {1, 2});
  for (int attempt = 0; attempt < 3; ++attempt)
    bed.run_well(four_nodes(), [](JobRank& rank) {
      EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
      EXPECT_TRUE(rank.session->start_restart());
    });
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

TEST(SessionBypass, NothingIsWrittenIntoTheDirectoryOfALivingJob) {
  BypassBed bed;
  const auto files = make_posix_files();
  std::unique_ptr<Background> background = make_background_thread();
  std::unique_ptr<Repeated> heartbeat;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    if (rank.number() == 0) {
      const OwnerRecord other{0, {1, 2}, "other", "tester", "n9", 1, 1, 0};
      auto living = Keeper::take_over(*files, *bed.clock, {rank.settings.prefix}, other);
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
  const std::uint64_t stride = sanitized ? 7 : steps_between_deaths();
  bool crashed = true;
  for (std::uint64_t step = 0; crashed; step += stride) {
    BypassBed bed;
    bed.write(four_nodes(), {1});
    std::atomic<bool> complete = false;
    crashed = !bed.run(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.init());
      EXPECT_EQ(rank.restart(), 1);
      if (rank.number() == GetParam()) rank.hook = crash_after(static_cast<int>(step));
      if (rank.write(2)) complete = true;
      rank.hook = nullptr;
    });
    const int from = bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(3); });
    ASSERT_TRUE(from == 2 || (from == 1 && !complete)) << step << " gave " << from;
    bed.expect_in_place(from);
    ASSERT_EQ(bed.restart(four_nodes()), 3) << step;
    for (const auto& left : fs::directory_iterator(bed.settings.prefix + "/.cairn"))
      ASSERT_FALSE(left.path().filename().string().starts_with("closed.")) << left.path();
    ASSERT_TRUE(crashed || step > 5) << "a bypassed checkpoint is more than a few operations";
  }
}

TEST_P(SessionBypassCrash, AnErrorIsReportedToAllAndHarmsNothing) {
  constexpr std::uint64_t stride = sanitized ? 7 : 1;
  std::string failed = "at first";
  for (std::uint64_t step = 0; !failed.empty(); step += stride) {
    BypassBed bed;
    bed.write(four_nodes(), {1});
    failed.clear();
    std::array<int, 8> complete{};
    bed.run_well(four_nodes(), [&](JobRank& rank) {
      EXPECT_EQ(rank.restart(), 1);
      if (rank.number() == GetParam())
        rank.hook = fail_after(static_cast<int>(step), Code::no_space, failed);
      complete[static_cast<std::size_t>(rank.number())] = rank.write(2) ? 1 : 0;
      rank.hook = nullptr;
    });
    ASSERT_EQ(std::count(complete.begin(), complete.end(), complete[0]), 8) << step;
    ASSERT_EQ(bed.restart(four_nodes()), complete[0] == 1 ? 2 : 1) << step << " " << failed;
  }
}

INSTANTIATE_TEST_SUITE_P(Session, SessionBypassCrash, ::testing::Values(0, 5));

}  // namespace
}  // namespace cairn
