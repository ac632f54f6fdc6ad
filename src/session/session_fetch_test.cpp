// Which checkpoint of the prefix directory a run takes, what it does where none can be had, and
// that neither changes with the next run.
#include <atomic>
#include <filesystem>

#include "support/job_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr const char* from_scratch = "THE RUN STARTS FROM SCRATCH";

class SessionFetch : public testing::Test {
 protected:
  /// All are there, and the nodes have none.
  void flush(const std::vector<int>& datasets) {
    bed_.settings.flush_interval = 1;
    bed_.write_and_finalize(datasets);
    bed_.lose_all_nodes();
  }

  /// By a new job on new nodes.
  int restart() {
    bed_.lose_all_nodes();
    return bed_.restart(four_nodes());
  }

  /// Nothing in the prefix directory can be reached.
  FileHook away() const {
    return [this](const FileOperation& operation) -> Status {
      if (!operation.path.starts_with(bed_.settings.prefix)) return {};
      return fail(Code::io, "injected: {} is away", operation.path);
    };
  }

  void expect_refused(Code code) {
    bed_.lose_all_nodes();
    bed_.run_well(four_nodes(), [&](JobRank& rank) {
      for (int asked = 0; asked < 2; ++asked) {
        const auto found = rank.session->have_restart();
        ASSERT_FALSE(found);
        EXPECT_EQ(found.error().code, code) << found.error().text;
      }
      EXPECT_FALSE(rank.session->start_checkpoint()) << "nothing is begun in its place";
    });
  }

  /// A run in which `hook` decides about all file operations after Init.
  void run_with(const FileHook& hook, const JobBed::RankMain& main) {
    EXPECT_TRUE(bed_.run(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.init());
      rank.hook = hook;
      main(rank);
    })) << bed_.log_text();
  }

  std::size_t times_said(const std::string& text) const {
    const std::string said = bed_.log_text();
    std::size_t times = 0;
    for (std::size_t at = said.find(text); at != std::string::npos; at = said.find(text, at + 1))
      ++times;
    return times;
  }

  PrefixJobBed bed_;
};

TEST_F(SessionFetch, EveryRunFromScratchAlthoughThereAreCheckpointsSaysSoOnce) {
  flush({1});
  fs::remove(bed_.file(1, 3));
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(restart(), 0);
    EXPECT_EQ(times_said(from_scratch), 1U) << "run " << run << ": " << bed_.log_text();
    EXPECT_TRUE(bed_.logs("rank 3.0")) << bed_.log_text();
  }
  EXPECT_TRUE(bed_.logs("cairn index quarantine --lift ckpt.1")) << bed_.log_text();
}

TEST_F(SessionFetch, ThatTheProgramCouldNotUseTheLastOneIsSaid) {
  flush({1});
  bed_.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.1");
    EXPECT_TRUE(rank.session->start_restart());
    EXPECT_FALSE(rank.session->complete_restart(false));
    EXPECT_EQ(rank.session->have_restart().value(), std::nullopt);
  });
  EXPECT_EQ(times_said(from_scratch), 1U) << bed_.log_text();
}

TEST_F(SessionFetch, ThatFetchingIsOffIsSaid) {
  flush({1});
  bed_.settings.fetch = false;
  EXPECT_EQ(restart(), 0);
  EXPECT_TRUE(bed_.logs("SCR_FETCH=0")) << bed_.log_text();
}

TEST_F(SessionFetch, ARecordThatCannotBeReadIsSaidToBeMissed) {
  flush({1});
  for (const auto& entry : fs::recursive_directory_iterator(bed_.settings.prefix + "/.cairn"))
    if (entry.path().filename() == "dataset") flip_bit(entry.path());
  fs::remove(bed_.settings.prefix + "/.cairn/listing");
  EXPECT_EQ(restart(), 0);
  EXPECT_EQ(times_said(from_scratch), 1U) << bed_.log_text();
}

/// A record that cannot be read now may be that of the newest checkpoint.
class SessionUnread : public SessionFetch {
 protected:
  /// A run that cannot read the record of this dataset until it has `passed`.
  void run(int dataset, const JobBed::RankMain& main) {
    passed_ = false;
    bed_.lose_all_nodes();
    fs::remove(bed_.settings.prefix + "/.cairn/listing");
    EXPECT_TRUE(bed_.run(four_nodes(), [&](JobRank& rank) {
      rank.hook = cannot_read(dataset);
      ASSERT_TRUE(rank.init());
      main(rank);
    })) << bed_.log_text();
  }

  FileHook cannot_read(int dataset) const {
    const std::string folder = fmt::format("/datasets/dataset.{}.", dataset);
    return [this, folder](const FileOperation& operation) -> Status {
      const bool is_record = operation.path.find(folder) != std::string_view::npos &&
                             operation.path.ends_with("/dataset");
      if (passed_ || !is_record) return {};
      return fail(Code::io, "injected: cannot {} {}", operation.name, operation.path);
    };
  }

  std::string folder_of_dataset(int dataset) const {
    const PrefixFolder folder{bed_.settings.prefix};
    for (const auto& entry : fs::directory_iterator(folder.datasets()))
      if (entry.path().filename().string().starts_with(fmt::format("dataset.{}.", dataset)))
        return entry.path();
    ADD_FAILURE() << "there is no dataset " << dataset;
    return "";
  }

  void pass(JobRank& rank) {
    rank.comm.barrier();
    passed_ = true;
    rank.comm.barrier();
  }

  /// Nothing is begun, and what comes when it has passed is dataset 2.
  void expect_refused_until_it_passes() {
    run(2, [&](JobRank& rank) {
      for (int asked = 0; asked < 2; ++asked) {
        const auto found = rank.session->have_restart();
        ASSERT_FALSE(found);
        EXPECT_EQ(found.error().code, Code::io) << found.error().text;
        EXPECT_NE(found.error().text.find("dataset.2."), std::string::npos) << found.error().text;
      }
      EXPECT_FALSE(rank.session->start_checkpoint()) << "nothing is begun in its place";
      pass(rank);
      EXPECT_EQ(rank.restart(), 2) << "asked again, it looks again";
      rank.expect_written(3);
      EXPECT_TRUE(rank.session->finalize());
    });
    EXPECT_EQ(times_said(from_scratch), 0U) << bed_.log_text();
    EXPECT_EQ(bed_.listed().front(), "ckpt.3");
  }

  std::atomic<bool> passed_ = false;
};

TEST_F(SessionUnread, IsNoReasonToStartFromScratch) {
  bed_.settings.prefix_size = 1;
  flush({1, 2});
  expect_refused_until_it_passes();
}

TEST_F(SessionUnread, IsNotPassedOverWhereTheRunIsToStop) {
  flush({1, 2});
  bed_.settings.on_fetch_fail = OnFetchFail::stop;
  expect_refused_until_it_passes();
}

TEST_F(SessionUnread, GivesWayToAnOlderOneWhereThatIsAllowed) {
  flush({1, 2});
  run(2, [&](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.1");
    pass(rank);
    EXPECT_EQ(rank.restart(), 2) << "asked again, it looks again";
  });
  EXPECT_TRUE(bed_.logs("cannot be read now")) << bed_.log_text();
}

TEST_F(SessionUnread, DoesNotMatterWhereANewerOneIsKnown) {
  flush({1, 2});
  bed_.settings.on_fetch_fail = OnFetchFail::stop;
  run(1, [](JobRank& rank) { EXPECT_EQ(rank.restart(), 2); });
}

TEST_F(SessionUnread, DoesNotMatterToARunThatKeepsNothing) {
  flush({2});
  bed_.settings.on_fetch_fail = OnFetchFail::fresh;
  run(1, [](JobRank& rank) { EXPECT_EQ(rank.session->have_restart().value(), std::nullopt); });
  EXPECT_EQ(times_said(from_scratch), 1U) << bed_.log_text();
}

/// It would be given its files' names when it can be read, after those of the newer one.
TEST_F(SessionUnread, NothingIsCopiedBesideOneWhoseFilesHaveNoNamesYet) {
  flush({1});
  const PrefixFolder folder{bed_.settings.prefix};
  const std::string markers = DatasetFolder::markers(folder_of_dataset(1));
  for (const bool settled : {false, true}) {
    bed_.settings.on_fetch_fail = OnFetchFail::fresh;
    if (settled)
      fs::remove(markers);
    else
      fs::create_directory(markers);
    run(1, [&](JobRank& rank) {
      const auto done = rank.write(2);
      EXPECT_EQ(done.has_value(), settled);
      EXPECT_TRUE(settled || done.error().text.find("to be renamed") != std::string::npos);
      pass(rank);
      rank.expect_written(3);
      EXPECT_TRUE(rank.session->finalize());
    });
    EXPECT_TRUE(fs::exists(folder.listing())) << "all is known again";
  }
}

TEST_F(SessionUnread, MayBeTheOneAskedFor) {
  flush({1, 2});
  bed_.settings.on_fetch_fail = OnFetchFail::stop;
  const auto expect_waits_for_1 = [&] {
    run(1, [&](JobRank& rank) {
      EXPECT_FALSE(rank.session->have_restart());
      pass(rank);
      EXPECT_EQ(rank.restart(), 1);
    });
  };
  bed_.settings.current = "ckpt.1";
  expect_waits_for_1();
  bed_.settings.current.clear();
  const auto files = make_posix_files();
  OwnerRecord me;
  auto keeper = Keeper::take_over(*files, *bed_.clock, {bed_.settings.prefix}, me, Claim::forced);
  ASSERT_TRUE(keeper && keeper->set_current("ckpt.1") && keeper->resign());
  expect_waits_for_1();
}

TEST_F(SessionUnread, MayBeANewerOneOfTheNameAskedFor) {
  flush({1, 2, 1});
  bed_.settings.on_fetch_fail = OnFetchFail::stop;
  bed_.settings.current = "ckpt.1";
  run(3, [&](JobRank& rank) {
    EXPECT_FALSE(rank.session->have_restart());
    pass(rank);
    EXPECT_EQ(rank.restart(), 1);
  });
}

TEST_F(SessionUnread, IsWhatIsNamedWhereTheOlderOneIsDamaged) {
  flush({1, 2});
  flip_bit(bed_.file(1, 5));
  run(2, [&](JobRank& rank) {
    const auto found = rank.session->have_restart();
    ASSERT_FALSE(found);
    EXPECT_NE(found.error().text.find("dataset.2."), std::string::npos) << found.error().text;
    EXPECT_EQ(found.error().text.find("rank 5"), std::string::npos) << found.error().text;
  });
}

TEST_F(SessionUnread, WhatIsGoneOrDamagedByThenStandsInTheWayNoMore) {
  for (const bool gone : {true, false}) {
    bed_.lose_all_nodes();
    flush({1, 2});
    bed_.settings.on_fetch_fail = OnFetchFail::stop;
    run(2, [&](JobRank& rank) {
      EXPECT_FALSE(rank.session->have_restart());
      rank.comm.barrier();
      if (rank.number() == 0 && gone) fs::remove_all(folder_of_dataset(2));
      if (rank.number() == 0 && !gone) flip_bit(folder_of_dataset(2) + "/dataset");
      pass(rank);
      EXPECT_EQ(rank.restart(), 1);
    });
    EXPECT_EQ(bed_.logs("cannot be used"), !gone) << bed_.log_text();
    fs::remove_all(bed_.settings.prefix);
    fs::create_directories(bed_.settings.prefix);
  }
}

/// What is there is no record. That is not transient.
TEST_F(SessionUnread, WhatCannotBeOneIsDamage) {
  flush({1, 2});
  bed_.settings.on_fetch_fail = OnFetchFail::stop;
  const std::string record = folder_of_dataset(2) + "/dataset";
  const std::vector<std::function<void()>> plants = {
      [&] { fs::create_symlink("elsewhere", record); },
      [&] { fs::create_directory(record); },
      [&] { std::ofstream(record) << std::string(2 << 20, 'x'); },
      [&] { fs::create_symlink(folder_of_dataset(1), record + ".link"); },
  };
  for (const auto& plant : plants) {
    fs::remove_all(record);
    plant();
    run(0, [&](JobRank& rank) { EXPECT_EQ(rank.restart(), 1); });
    EXPECT_TRUE(bed_.logs("cannot be used")) << bed_.log_text();
  }
}

/// A name may be that of one that cannot be read.
TEST_F(SessionUnread, NoCallByNamePassesItOver) {
  flush({1, 2});
  bed_.settings.on_fetch_fail = OnFetchFail::fresh;
  run(2, [&](JobRank& rank) {
    for (const char* name : {"ckpt.1", "ckpt.2", "ckpt.3"}) {
      for (const Status& done :
           {rank.session->datasets().drop(name), rank.session->datasets().remove(name)}) {
        ASSERT_FALSE(done) << name;
        EXPECT_EQ(done.error().code, Code::io) << done.error().text;
        EXPECT_NE(done.error().text.find("dataset.2."), std::string::npos) << done.error().text;
      }
    }
    pass(rank);
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.2"));
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.3")) << "there is none";
  });
  EXPECT_EQ(bed_.listed(), Names({"ckpt.1"}));
}

/// It may have the same files, or the name.
TEST_F(SessionUnread, NothingIsDeletedBesideIt) {
  flush({1, 2});
  bed_.settings.on_fetch_fail = OnFetchFail::fresh;
  run(1, [&](JobRank& rank) {
    const Status removed = rank.session->datasets().remove("ckpt.2");
    ASSERT_FALSE(removed);
    EXPECT_NE(removed.error().text.find("dataset 2 (ckpt.2) was not deleted from "),
              std::string::npos)
        << removed.error().text;
  });
  EXPECT_EQ(bed_.listed(), Names({"ckpt.2", "ckpt.1"}));
}

TEST_F(SessionUnread, KeepsTheCachedCopyOfADatasetThatCannotBeDeletedBesideIt) {
  flush({1, 2});
  run(1, [&](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 2);
    EXPECT_FALSE(rank.session->datasets().remove("ckpt.2"));
    EXPECT_EQ(bed_.parts("n1", 2).size(), 2U);
    pass(rank);
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.2"));
    EXPECT_EQ(bed_.parts("n1", 2).size(), 0U);
  });
  EXPECT_EQ(bed_.listed(), Names({"ckpt.1"}));
}

TEST_F(SessionUnread, IsNotPurgedSilently) {
  flush({1, 2});
  bed_.settings.prefix_purge = true;
  EXPECT_TRUE(bed_.run(four_nodes(), [&](JobRank& rank) {
    rank.hook = cannot_read(2);
    if (rank.number() == 0) fs::remove(bed_.settings.prefix + "/.cairn/listing");
    const Status ready = rank.init();
    ASSERT_FALSE(ready);
    EXPECT_EQ(ready.error().code, Code::io) << ready.error().text;
  })) << bed_.log_text();
  EXPECT_EQ(bed_.listed(), Names({"ckpt.2", "ckpt.1"}));
}

TEST_F(SessionFetch, WhatIsPassedOverForAnOlderOneIsReportedByEveryRun) {
  flush({1, 2});
  flip_bit(bed_.file(2, 5));
  EXPECT_EQ(restart(), 1);
  EXPECT_TRUE(bed_.logs("rank 5.0")) << bed_.log_text();
  EXPECT_EQ(restart(), 1);
  EXPECT_TRUE(bed_.logs("ckpt.2) is not used: an earlier restart from it failed"))
      << bed_.log_text();
  EXPECT_EQ(times_said(from_scratch), 0U) << bed_.log_text();
}

TEST_F(SessionFetch, StopRefusesEveryRunUntilItIsRepaired) {
  flush({1, 2});
  bed_.settings.on_fetch_fail = OnFetchFail::stop;
  flip_bit(bed_.file(2, 0));
  for (int run = 0; run < 2; ++run) expect_refused(Code::corrupt);
  flip_bit(bed_.file(2, 0));
  EXPECT_EQ(restart(), 2);
}

TEST_F(SessionFetch, ATransientErrorIsNoReasonToStartFromScratch) {
  flush({1, 2});
  std::atomic<bool> passed = false;
  run_with(
      [&](const FileOperation& operation) -> Status {
        if (passed || !operation.path.starts_with(bed_.settings.prefix + "/ckpt.")) return {};
        return fail(Code::io, "injected: cannot read {}", operation.path);
      },
      [&](JobRank& rank) {
        for (int asked = 0; asked < 2; ++asked) {
          const auto found = rank.session->have_restart();
          ASSERT_FALSE(found);
          EXPECT_NE(found.error().text.find("CAIRN_ON_FETCH_FAIL=fresh"), std::string::npos);
        }
        EXPECT_FALSE(rank.session->start_checkpoint()) << "nothing is begun in its place";
        rank.comm.barrier();
        passed = true;
        rank.comm.barrier();
        EXPECT_EQ(rank.restart(), 2) << "asked again, it looks again";
      });
  EXPECT_EQ(times_said(from_scratch), 0U) << bed_.log_text();
}

TEST_F(SessionFetch, WhereThereProvesToBeNothingTheRunBegins) {
  std::atomic<bool> passed = false;
  EXPECT_TRUE(bed_.run(four_nodes(), [&](JobRank& rank) {
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (passed || !operation.path.ends_with("/.cairn")) return {};
      return fail(Code::io, "injected: {} is away", operation.path);
    };
    ASSERT_TRUE(rank.init());
    EXPECT_FALSE(rank.session->have_restart());
    rank.comm.barrier();
    passed = true;
    rank.comm.barrier();
    EXPECT_EQ(rank.session->have_restart().value(), std::nullopt);
    rank.expect_written(1);
  }));
}

TEST_F(SessionFetch, ARunThatFetchesNothingIsNotRefused) {
  bed_.settings.fetch = false;
  EXPECT_TRUE(bed_.run(four_nodes(), [&](JobRank& rank) {
    rank.hook = away();
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.session->have_restart().value(), std::nullopt);
    rank.expect_written(1);
  }));
}

TEST_F(SessionFetch, ARefusedOneThatIsDroppedKeepsNoRunFromBeginning) {
  flush({1, 2});
  bed_.settings.on_fetch_fail = OnFetchFail::stop;
  flip_bit(bed_.file(2, 0));
  bed_.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_FALSE(rank.session->have_restart());
    EXPECT_TRUE(rank.session->datasets().drop("ckpt.2"));
    EXPECT_EQ(rank.restart(), 1);
  });
}

TEST_F(SessionFetch, APrefixDirectoryThatCannotBeReadNowIsNoReasonEither) {
  flush({1, 2});
  for (const OnFetchFail answer : {OnFetchFail::older, OnFetchFail::fresh}) {
    bed_.settings.on_fetch_fail = answer;
    EXPECT_TRUE(bed_.run(four_nodes(), [&](JobRank& rank) {
      rank.hook = away();
      ASSERT_TRUE(rank.init());
      const auto found = rank.session->have_restart();
      EXPECT_EQ(found.has_value(), answer == OnFetchFail::fresh);
    }));
    EXPECT_EQ(times_said("STARTS FROM SCRATCH: it is unknown whether"),
              answer == OnFetchFail::fresh ? 1U : 0U)
        << bed_.log_text();
  }
  bed_.settings.on_fetch_fail = OnFetchFail::older;
  EXPECT_EQ(restart(), 2) << "nothing was marked";
}

/// The checksums of the flush hold for what is protected. The medium is bad: no time changes.
TEST_F(SessionFetch, AByteThatChangesBetweenTheCopyAndItsProtectionReachesNoProgram) {
  flush({1, 2});
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    bool is_good = rank.number() != 5;
    rank.hook = [&](const FileOperation& operation) -> Status {
      const bool is_copied =
          operation.name == "rename" && operation.path.find("/fetch.5") != std::string_view::npos;
      if (!is_copied || std::exchange(is_good, true)) return {};
      for (const auto& entry : fs::recursive_directory_iterator(operation.path)) {
        if (!entry.is_regular_file() || entry.file_size() == 0 ||
            entry.path().string().find("/files/") == std::string::npos)
          continue;
        const auto time = entry.last_write_time();
        flip_bit(entry.path());
        fs::last_write_time(entry.path(), time);
        break;
      }
      return {};
    };
    EXPECT_EQ(rank.restart(), 1);
    EXPECT_TRUE(is_good);
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_TRUE(bed_.logs("files of rank 5")) << bed_.log_text();
  EXPECT_EQ(restart(), 2) << "what is flushed is good";
}

TEST_F(SessionFetch, WithoutRoomInTheCacheItIsReadWhereItIs) {
  flush({1, 2});
  run_with(
      [](const FileOperation& operation) -> Status {
        if (operation.path.find("/fetch.") == std::string_view::npos) return {};
        return fail(Code::no_space, "injected: no room for {}", operation.path);
      },
      [](JobRank& rank) { EXPECT_EQ(rank.restart(), 2); });
  EXPECT_TRUE(bed_.logs("is not copied to the cache")) << bed_.log_text();
}

TEST_F(SessionFetch, AfterGoingBackWhatIsOlderIsTakenBeforeWhatWasLeft) {
  flush({1, 2, 3, 4});
  bed_.run_well(four_nodes(),
                [](JobRank& rank) { EXPECT_TRUE(rank.session->datasets().current("ckpt.3")); });
  flip_bit(bed_.file(3, 0));
  for (int run = 0; run < 2; ++run) EXPECT_EQ(restart(), 2) << "run " << run;
  for (const int dataset : {1, 2}) flip_bit(bed_.file(dataset, 0));
  EXPECT_EQ(restart(), 4) << "rather than from scratch";
}

TEST_F(SessionFetch, TheOneAskedForIsTriedThoughItHasFailedAndThenWhatIsOlder) {
  flush({1, 2, 3});
  bed_.settings.current = "ckpt.2";
  flip_bit(bed_.file(2, 0));
  EXPECT_EQ(restart(), 1);
  flip_bit(bed_.file(2, 0));
  EXPECT_EQ(restart(), 2);
}

TEST_F(SessionFetch, ToAskForOneInQuarantineDoesNotBringItBack) {
  flush({1, 2, 3});
  bed_.settings.restart_attempts = 1;
  bed_.settings.current = "ckpt.2";
  bed_.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
    EXPECT_TRUE(rank.session->start_restart());
  });
  EXPECT_EQ(restart(), 1);
  EXPECT_TRUE(bed_.logs("cairn index quarantine --lift ckpt.2")) << bed_.log_text();
}

TEST(SessionHeldBack, WhatRestartsHaveDiedFromIsNotOfferedOnceItIsCopied) {
  PrefixJobBed bed;
  bed.settings.stores[0].count = 2;
  bed.settings.flush_interval = 0;
  bed.write(four_nodes(), {1, 2});
  bed.settings.restart_attempts = 1;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.2");
    EXPECT_TRUE(rank.session->start_restart());
  });
  EXPECT_TRUE(bed.listed().empty());
  bed.settings.flush_on_restart = true;
  bed.run_well(four_nodes(), [](JobRank& rank) { EXPECT_EQ(rank.restart(), 1); });
  EXPECT_EQ(bed.listed(), Names({"ckpt.2", "ckpt.1"}));
}

}  // namespace
}  // namespace cairn
