// Restarts from the prefix directory without a copy in the cache, and a purge of it.
#include <filesystem>

#include "prefix/found_files.hpp"
#include "support/job_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

TEST(SessionFetchBypass, ReadsWhatWasFlushedWhereItIs) {
  PrefixJobBed bed;
  bed.write_and_finalize({1, 2, 3});
  bed.lose_all_nodes();
  bed.settings.fetch_bypass = true;
  EXPECT_EQ(bed.restart(four_nodes()), 3);
  for (const std::string node : {"n0", "n1", "n2", "n3"}) EXPECT_EQ(bed.parts(node), Names());
  flip_bit(bed.file(3, 6));
  EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(4); }), 2);
  EXPECT_TRUE(bed.logs("ckpt.3/rank 6.0")) << bed.log_text();
  EXPECT_EQ(bed.restart(four_nodes()), 4) << "from the cache";
}

TEST(SessionFetchBypass, AFileWithoutItsOwnNameYetIsNoDamage) {
  PrefixJobBed bed;
  const auto no_names = [&](const FileOperation& operation) -> Status {
    const bool naming =
        operation.name == "rename" && operation.path.find("/.cairn.") != std::string_view::npos;
    return naming ? fail(Code::io, "injected: cannot rename {}", operation.path) : Status{};
  };
  const auto without_names = [&](const auto& rank_main) {
    EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
      rank.hook = no_names;
      ASSERT_TRUE(rank.init());
      rank_main(rank);
      rank.hook = nullptr;
    }));
  };
  without_names([](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2);
  });
  bed.lose_all_nodes();
  bed.settings.fetch_bypass = true;
  without_names([](JobRank& rank) {
    const auto found = rank.session->have_restart();
    ASSERT_FALSE(found);
    EXPECT_TRUE(found.error().text.starts_with("there may be a checkpoint")) << found.error().text;
  });
  EXPECT_TRUE(bed.logs("temporary names")) << bed.log_text();
  EXPECT_EQ(bed.restart(four_nodes()), 2) << "it has not been marked";
}

class GlobalBed : public PrefixJobBed {
 public:
  void restart_globally() {
    settings.global_restart = settings.fetch_bypass = settings.flush_on_restart = true;
  }
};

TEST(SessionGlobalRestart, WhatOnlyTheCacheHasIsCopiedFirst) {
  GlobalBed bed;
  bed.write(four_nodes(), {1, 2, 3});
  EXPECT_EQ(bed.listed(), Names({"ckpt.2"}));
  bed.restart_globally();
  bed.settings.flush_interval = 10;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.3");
    ASSERT_TRUE(rank.session->start_restart());
    const auto path = rank.session->route_file(rank.file_name(0, 3));
    EXPECT_EQ(*path, bed.file(3, rank.number()));
    rank.expect_files(3);
    EXPECT_TRUE(rank.session->complete_restart(true));
    rank.expect_written(4);
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.3", "ckpt.2"}));
  EXPECT_EQ(bed.restart(four_nodes()), 4);
  EXPECT_EQ(bed.listed(), Names({"ckpt.4", "ckpt.3", "ckpt.2"}));
}

TEST(SessionGlobalRestart, WhereItCannotBeCopiedTheAnswerIsAsForAFetch) {
  for (const OnFetchFail answer : {OnFetchFail::older, OnFetchFail::stop, OnFetchFail::fresh}) {
    GlobalBed bed;
    bed.write(four_nodes(), {1, 2, 3});
    bed.restart_globally();
    bed.settings.on_fetch_fail = answer;
    EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
      rank.hook = [](const FileOperation& operation) -> Status {
        if (operation.path.find("/.cairn.") == std::string_view::npos) return {};
        return fail(Code::no_space, "injected: cannot {} {}", operation.name, operation.path);
      };
      ASSERT_TRUE(rank.init());
      if (answer == OnFetchFail::stop) {
        EXPECT_FALSE(rank.session->have_restart());
        EXPECT_FALSE(rank.session->have_restart()) << "asked again, it says the same";
      } else {
        EXPECT_EQ(rank.restart(), answer == OnFetchFail::older ? 2 : 0);
      }
      rank.hook = nullptr;
    }));
    EXPECT_TRUE(bed.logs("ckpt.3) stays in the cache")) << bed.log_text();
    EXPECT_EQ(bed.logs("STARTS FROM SCRATCH"), answer == OnFetchFail::fresh) << bed.log_text();
    EXPECT_EQ(bed.restart(four_nodes()), 3) << "nothing of it is lost";
  }
}

TEST(SessionPurge, NoNumberIsGivenAgain) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 1;
  bed.write_and_finalize({1, 2, 3});
  bed.lose_all_nodes();
  bed.settings.prefix_purge = true;
  bed.write_and_finalize({7});
  EXPECT_TRUE(bed.logs("dataset 4 (ckpt.7) is in")) << bed.log_text();
}

TEST(SessionPurge, DeletesWhatIsListedAndNothingElse) {
  PrefixJobBed bed;
  bed.write_and_finalize({1, 2, 3, 4});
  bed.lose_all_nodes();
  std::ofstream(bed.settings.prefix + "/ckpt.4/mine") << "the user's";
  bed.settings.prefix_purge = true;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 0);
    rank.expect_written(5, flag_output);
  });
  EXPECT_TRUE(bed.logs("2 datasets are deleted")) << bed.log_text();
  EXPECT_TRUE(bed.logs("ckpt.2, ckpt.4")) << bed.log_text();
  EXPECT_EQ(bed.listed(), Names({"ckpt.5"}));
  EXPECT_FALSE(fs::exists(bed.settings.prefix + "/ckpt.2"));
  EXPECT_EQ(read_all(bed.settings.prefix + "/ckpt.4/mine"), "the user's");
  EXPECT_EQ(std::distance(fs::directory_iterator(bed.settings.prefix + "/ckpt.4"), {}), 1);
}

/// Files that were there before, which a command has made a checkpoint of; it is the oldest.
class FoundBed : public PrefixJobBed {
 public:
  FoundBed() {
    FoundDataset found;
    found.record.info = {{1, 1}, 100, 100, flag_checkpoint, 8, "before"};
    found.node = "n";
    found.block_bytes = 512;
    fs::create_directories(settings.prefix + "/before");
    for (int rank = 0; rank < 8; ++rank) {
      found.files.push_back({fmt::format("before/{}", rank)});
      std::ofstream(settings.prefix + "/" + found.files.back()[0]) << "of rank " << rank;
    }
    const auto files = make_posix_files();
    const auto foreground = make_foreground();
    auto keeper = Keeper::take_over(*files, *clock, {settings.prefix}, {}).value();
    const Site site{
        *files,        *clock, {settings.prefix}, keeper.epoch_folder().epoch(), 1, true, {},
        {*foreground}, &keeper};
    Team(1).run([&](Communicator& alone) {
      const auto published = publish_found(alone, site, found);
      EXPECT_TRUE(published && published->settled);
    });
    EXPECT_TRUE(keeper.save_listing());
    EXPECT_TRUE(keeper.resign());
  }

  void expect_files() const {
    for (int rank = 0; rank < 8; ++rank)
      EXPECT_EQ(read_all(fmt::format("{}/before/{}", settings.prefix, rank)),
                fmt::format("of rank {}", rank));
  }
};

TEST(SessionPurge, FilesThatCairnDidNotWriteStay) {
  FoundBed bed;
  bed.write_and_finalize({1, 2});
  bed.lose_all_nodes();
  bed.settings.prefix_purge = true;
  bed.run_well(four_nodes(), [](JobRank& rank) { EXPECT_EQ(rank.restart(), 0); });
  EXPECT_TRUE(bed.logs("1 dataset is deleted from")) << bed.log_text();
  EXPECT_TRUE(bed.logs("1 dataset is dropped (Cairn did not write their files")) << bed.log_text();
  EXPECT_EQ(bed.listed(), Names());
  bed.expect_files();
  bed.settings.prefix_purge = false;
  EXPECT_EQ(bed.restart(four_nodes()), 0) << "nor does it come back";
}

TEST(SessionWindow, FilesThatCairnDidNotWriteStayAndDoNotCount) {
  FoundBed bed;
  bed.settings.prefix_size = 2;
  bed.settings.flush_interval = 1;
  bed.write(four_nodes(), {1, 2, 3});
  EXPECT_EQ(bed.listed(), Names({"ckpt.3", "ckpt.2", "before"}));
  bed.expect_files();
  bed.run_well(four_nodes(),
               [](JobRank& rank) { EXPECT_TRUE(rank.session->datasets().remove("before")); });
  EXPECT_FALSE(fs::exists(bed.settings.prefix + "/before")) << "who names it deletes it";
}

TEST(SessionPurge, OneThatCannotBeDoneIsAnErrorOfInit) {
  PrefixJobBed bed;
  bed.write_and_finalize({1, 2});
  bed.settings.prefix_purge = true;
  bed.run(four_nodes(), [](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      if (operation.name != "rename" || operation.to.find("/deleted.") == std::string_view::npos)
        return {};
      return fail(Code::io, "injected: cannot rename {}", operation.path);
    };
    EXPECT_FALSE(rank.init());
    rank.hook = nullptr;
  });
  bed.settings.prefix_purge = false;
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

/// Every dataset is there or not, and what is not leaves nothing behind.
TEST(SessionPurge, ACrashAtAnyCallLeavesEachDatasetWholeOrGone) {
  constexpr int stride = sanitized ? 19 : 3;
  bool crashed = true;
  for (int step = 0; crashed; step += stride) {
    PrefixJobBed bed;
    bed.settings.flush_interval = 1;
    bed.write(four_nodes(), {1, 2});
    bed.lose_all_nodes();
    bed.settings.prefix_purge = true;
    crashed = !bed.run(four_nodes(), [&](JobRank& rank) {
      if (rank.number() == 0)
        rank.hook = [&, count = 0](const FileOperation& operation) mutable -> Status {
          if (operation.path.starts_with(bed.settings.prefix) && count++ == step) throw Crash{};
          return {};
        };
      (void)rank.init();
      rank.hook = nullptr;
    });
    bed.settings.prefix_purge = false;
    bed.run_well(four_nodes(), [](JobRank&) {});
    const Names left = bed.listed();
    for (const int dataset : {1, 2}) {
      const std::string name = fmt::format("ckpt.{}", dataset);
      if (std::find(left.begin(), left.end(), name) != left.end())
        bed.expect_own_files(dataset);
      else
        ASSERT_FALSE(fs::exists(bed.settings.prefix + "/" + name)) << step;
    }
    ASSERT_EQ(bed.restart(four_nodes()), left.empty() ? 0 : 2) << step;
    ASSERT_FALSE(::testing::Test::HasFailure()) << step;
  }
}

}  // namespace
}  // namespace cairn
