// Datasets without files, and names of files that meet others.
#include "support/job_bed.hpp"

namespace cairn {
namespace {

/// From Start to Complete, with these files, each with `content`.
Status write_named(JobRank& rank, std::uint32_t flags, const Names& names,
                   const std::string& content = "content") {
  CAIRN_TRY(rank.session->start_output("", flags));
  for (const std::string& name : names) {
    CAIRN_ASSIGN(const std::string path,
                 rank.session->route_file(rank.settings.prefix + "/" + name));
    std::ofstream(path, std::ios::binary) << content << rank.number();
  }
  return rank.session->complete_output(true);
}

void expect_invalid(const Status& done, const Names& words) {
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::invalid) << done.error().text;
  for (const std::string& word : words)
    EXPECT_NE(done.error().text.find(word), std::string::npos)
        << word << " in " << done.error().text;
}

// --- no files ---

TEST(SessionNames, ACheckpointWithoutFilesIsInvalidAndSaysHowToHaveSome) {
  for (const bool bypass : {false, true}) {
    PrefixJobBed bed;
    bed.settings.checkpoints[0].bypass = bypass;
    bed.run_well(four_nodes(), [](JobRank& rank) {
      rank.expect_written(1);
      for (const std::uint32_t flags : {flag_checkpoint, flag_checkpoint | flag_output})
        expect_invalid(write_named(rank, flags, {}), {"SCR_Route_file"});
    });
    EXPECT_EQ(bed.restart(four_nodes()), 1);
  }
}

TEST(SessionNames, ARankWithoutFilesIsNoTroubleWhileAnotherHasSome) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_TRUE(write_named(rank, flag_checkpoint, rank.number() == 6 ? Names{"only"} : Names{}));
  });
}

TEST(SessionNames, AnOutputWithoutFilesIsCompleteAndWarnsOnce) {
  PrefixJobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_TRUE(write_named(rank, flag_output, {}));
    EXPECT_TRUE(write_named(rank, flag_output, {}));
    EXPECT_TRUE(write_named(rank, 0, {}));
  });
  const std::string said = bed.log_text();
  const auto first = said.find("no rank wrote a file");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("no rank wrote a file", first + 1), std::string::npos) << said;
}

// --- a path that was refused ---

TEST(SessionNames, AFileThatGotNoPathMakesThePartInvalidThoughTheRankCallsItValid) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    ASSERT_TRUE(rank.write_files(1));
    if (rank.number() == 2) {
      EXPECT_FALSE(rank.session->route_file("/elsewhere/state"));
      const auto instead = rank.session->route_file(rank.settings.prefix + "/instead.2");
      ASSERT_TRUE(instead) << instead.error().text;
      std::ofstream(*instead) << "whatever was to be in the other file";
    }
    expect_invalid(rank.session->complete_checkpoint(true), {"rank 2", "/elsewhere/state"});
    rank.expect_written(2);
  });
}

// --- one name on two ranks ---

TEST(SessionNames, TwoRanksWithOneFileNameAreFoundAtComplete) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    const bool same = rank.number() == 3 || rank.number() == 6;
    const std::string name = same ? "a/state" : fmt::format("a/state.{}", rank.number());
    expect_invalid(write_named(rank, flag_checkpoint, {name}),
                   {"3", "6", "a/state", "SCR_CACHE_BYPASS"});
    rank.expect_written(2);
  });
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

TEST(SessionNames, AFileThatOneRankWritesForAllIsNamedWithTheSettingThatItNeeds) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    const auto path = rank.session->route_file(rank.settings.prefix + "/all");
    ASSERT_TRUE(path);
    if (rank.number() == 0) std::ofstream(*path) << "of all";
    expect_invalid(rank.session->complete_checkpoint(true), {"all", "SCR_CACHE_BYPASS=1"});
    rank.expect_written(2);
  });
}

TEST(SessionNames, NamesThatDoNotTellTheRankAreComparedAndMayDiffer) {
  JobBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    const std::string letter(1, static_cast<char>('a' + rank.number()));
    EXPECT_TRUE(write_named(rank, flag_checkpoint, {letter, "of." + letter}));
  });
}

TEST(SessionNames, RanksMayShareAFileThatIsWrittenInPlace) {
  PrefixJobBed bed;
  bed.settings.checkpoints[0].bypass = true;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    const auto path = rank.session->route_file(rank.settings.prefix + "/all");
    if (rank.number() == 0) std::ofstream(*path) << "of all";
    rank.comm.barrier();
    EXPECT_TRUE(rank.session->complete_checkpoint(true));
  });
}

// --- one name in two datasets ---

struct Found {
  std::string name;
  std::string replaced_by;
  auto operator<=>(const Found&) const = default;
};

/// Newest first, without the beginning of the names.
std::vector<Found> found_in(const PrefixJobBed& bed) {
  std::vector<Found> found;
  std::vector<std::string> damaged;
  const Listing listing = *read_listing(*make_posix_files(), {bed.settings.prefix}, damaged);
  for (const DatasetRecord& record : listing)
    found.push_back({record.info.name, record.replaced_by});
  return found;
}

class ReplacedNames : public ::testing::TestWithParam<bool> {
 protected:
  ReplacedNames() {
    bed_.settings.flush_interval = 1;
    bed_.settings.checkpoints[0].bypass = GetParam();
  }

  /// A run that writes a checkpoint for each of these lists of names; a name has the rank put after
  /// it. Its bytes differ from those of every other.
  void write(const std::vector<Names>& checkpoints) {
    bed_.run_well(four_nodes(), [&](JobRank& rank) {
      int count = 0;
      for (Names names : checkpoints) {
        for (std::string& name : names) name += fmt::format(".{}", rank.number());
        const Status done = write_named(rank, flag_checkpoint, names,
                                        fmt::format("{} of {}: ", ++count, checkpoints.size()));
        EXPECT_TRUE(done) << done.error().text;
      }
      EXPECT_TRUE(rank.session->finalize());
    });
  }

  PrefixJobBed bed_;
};

INSTANTIATE_TEST_SUITE_P(Written, ReplacedNames, ::testing::Bool(), [](const auto& bypass) {
  return bypass.param ? "InPlace" : "ToTheCache";
});

TEST_P(ReplacedNames, ADatasetThatLosesItsFilesToANewerOneIsMarkedAndItIsSaidOnce) {
  write({{"state"}, {"state"}, {"state"}});
  EXPECT_EQ(found_in(bed_), (std::vector<Found>{{"scr.dataset.3", ""},
                                                {"scr.dataset.2", "dataset 3 (scr.dataset.3)"},
                                                {"scr.dataset.1", "dataset 2 (scr.dataset.2)"}}));
  const std::string said = bed_.log_text();
  const auto first = said.find("has overwritten state.");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("has overwritten", first + 1), std::string::npos) << said;
}

TEST_P(ReplacedNames, ARunThatComesLaterMarksWhatItReplaces) {
  write({{"state"}});
  write({{"other"}, {"state"}});
  EXPECT_EQ(found_in(bed_), (std::vector<Found>{{"scr.dataset.3", ""},
                                                {"scr.dataset.2", ""},
                                                {"scr.dataset.1", "dataset 3 (scr.dataset.3)"}}));
}

TEST_P(ReplacedNames, NamesThatAreUsedInTurnAreFoundHoweverManyThereAre) {
  constexpr int names = 20;
  std::vector<Names> checkpoints;
  for (int i = 0; i <= names; ++i) checkpoints.push_back({fmt::format("state.{}", i % names)});
  write(checkpoints);
  const std::vector<Found> found = found_in(bed_);
  ASSERT_EQ(found.size(), names + 1U);
  EXPECT_EQ(found[names], (Found{"scr.dataset.1", "dataset 21 (scr.dataset.21)"}));
  EXPECT_EQ(found[names - 1].replaced_by, "");
}

bool is_published_manifest(std::string_view path) {
  return path.find("/datasets/") != path.npos && path.find("/manifest") != path.npos;
}

/// Checkpoint 2 takes a file of checkpoint 1, which cannot be found out then; it is with the next.
TEST_P(ReplacedNames, AMarkThatFailedIsMadeWithTheNextDataset) {
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    const std::string own = fmt::format("state.{}", rank.number());
    ASSERT_TRUE(write_named(rank, flag_checkpoint, {own}, "first"));
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool reads_manifest = operation.name == "open" && is_published_manifest(operation.path);
      return reads_manifest ? fail(Code::io, "injected: cannot read {}", operation.path) : Status{};
    };
    EXPECT_TRUE(write_named(rank, flag_checkpoint, {own}, "second"));
    rank.hook = nullptr;
    EXPECT_TRUE(write_named(rank, flag_checkpoint, {"other." + own}));
  });
  EXPECT_TRUE(bed_.logs("injected")) << bed_.log_text();
  EXPECT_EQ(found_in(bed_), (std::vector<Found>{{"scr.dataset.3", ""},
                                                {"scr.dataset.2", ""},
                                                {"scr.dataset.1", "dataset 2 (scr.dataset.2)"}}));
}

TEST_P(ReplacedNames, ARestartPassesOverWhatIsReplaced) {
  write({{"other"}, {"state"}, {"state"}});
  bed_.lose_all_nodes();
  for (int rank = 0; rank < 8; ++rank)
    std::filesystem::remove(fmt::format("{}/state.{}", bed_.settings.prefix, rank));
  bed_.run_well(four_nodes(), [](JobRank& rank) {
    const auto name = rank.session->have_restart();
    ASSERT_TRUE(name && *name);
    EXPECT_EQ(**name, "scr.dataset.1");
  });
  EXPECT_FALSE(bed_.logs("dataset 2 (scr.dataset.2) in")) << "it was tried";
}

TEST_P(ReplacedNames, AFileThatIsWrittenAgainWithTheSameBytesHarmsNoOlderDataset) {
  bed_.run_well(four_nodes(), [](JobRank& rank) {
    for (int step = 1; step <= 2; ++step)
      EXPECT_TRUE(write_named(rank, flag_checkpoint,
                              {fmt::format("parameters.{}", rank.number()),
                               fmt::format("step.{}/state.{}", step, rank.number())}));
  });
  for (const Found& found : found_in(bed_)) EXPECT_EQ(found.replaced_by, "") << found.name;
}

TEST_P(ReplacedNames, AFileWithTheSameBytesIsReadOnceHoweverManyOlderDatasetsHaveIt) {
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    const std::string file = fmt::format("{}/same.{}", rank.settings.prefix, rank.number());
    int views = 0;
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (operation.name.starts_with("view") && operation.path == file) ++views;
      return {};
    };
    std::vector<int> views_of;
    for (int step = 1; step <= 5; ++step) {
      views = 0;
      EXPECT_TRUE(write_named(rank, flag_checkpoint,
                              {fmt::format("same.{}", rank.number()),
                               fmt::format("step.{}/state.{}", step, rank.number())}));
      views_of.push_back(views);
    }
    EXPECT_EQ(views_of[4], views_of[1]) << "which has one older one";
    rank.hook = nullptr;
  });
}

}  // namespace
}  // namespace cairn
