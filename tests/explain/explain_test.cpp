// What `cairn explain` foretells is what the job does, for every failure it can meet; and it
// changes nothing.
#include "dead_job.hpp"
#include "prefix/last_run_file.hpp"
#include "prefix/scr_harness.hpp"
#include "tools/exit_codes.hpp"
#include "tools/index_command.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

class Explain : public DeadJob {};

// --- the caches ---

TEST_F(Explain, TheNewestCheckpointOfTheCacheIsTaken) {
  cluster_.write(four_nodes(), {1, 2, 3});
  const auto before = snapshot(cluster_.node(""));
  ASSERT_EQ(explain(), 0) << told_;
  EXPECT_TRUE(
      out_.starts_with("a restart with 8 ranks would take dataset 3 (ckpt.3) from the cache"))
      << out_;
  EXPECT_TRUE(said_of("ckpt.3", "cache").at("taken")) << out_;
  EXPECT_TRUE(said_of("ckpt.2", "prefix").at("usable")) << out_;
  EXPECT_FALSE(said_of("ckpt.2", "prefix").at("taken")) << out_;
  EXPECT_EQ(json_.at("outcome"), "cache");
  EXPECT_EQ(snapshot(cluster_.node("")), before);
  expect_forecast(3);
}

TEST_F(Explain, ALostNodeIsNamedAndTheSchemeThatBringsItBack) {
  cluster_.write(four_nodes(), {1});
  cluster_.lose("n1");
  ASSERT_EQ(explain(), 0) << told_;
  const auto cached = said_of("ckpt.1", "cache");
  for (const char* words : {"rank 2 (written on n1)", "rank 3 (written on n1)", "XOR"})
    EXPECT_TRUE(has(cached, words)) << words << " in\n" << out_;
  EXPECT_TRUE(shows("note: data written on n1 ")) << out_;
  EXPECT_TRUE(has(json_.at("notes"), "cairn scavenge --prefix " + prefix())) << out_;
  expect_forecast(1, replaced(four_nodes(), "n1", "n9"));
}

TEST_F(Explain, MoreLostNodesThanTheSchemeHoldsAreNamedWithTheirSets) {
  cluster_.write(four_nodes(), {1, 2, 3});
  cluster_.lose("n1");
  cluster_.lose("n2");
  ASSERT_EQ(explain(), 0) << told_;
  const auto cached = said_of("ckpt.3", "cache");
  EXPECT_FALSE(cached.at("usable"));
  for (const char* words :
       {"it cannot be made whole: data of rank 2 (written on n1), rank 4 (written on n2) in the "
        "set of "
        "ranks 0,2,4,6",
        "rank 5 (written on n2), rank 3 (written on n1) in the set of ranks 1,3,5,7",
        "start again with the nodes it was written on", "cairn scavenge --prefix "})
    EXPECT_TRUE(has(cached, words)) << words << " in\n" << out_;
  EXPECT_TRUE(said_of("ckpt.2", "prefix").at("taken"));
  expect_forecast(2);
}

TEST_F(Explain, ARankWhoseRecordIsLostIsNamed) {
  cluster_.settings.checkpoints[0].scheme = Scheme::single;
  cluster_.write(four_nodes(), {1});
  fs::remove_all(cluster_.parts("n1", 1).at(0));
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.1", "cache"), "no intact record of rank 2 is left on any node"))
      << out_;
  expect_forecast(0);
}

TEST_F(Explain, MissingFilesAndRecordsOfTheCacheAreNamed) {
  cluster_.write(four_nodes(), {1});
  const std::string part = cluster_.parts("n2", 1).at(0);
  fs::resize_file(part + "/files/ckpt.1/rank 4.1", 3);
  fs::remove(cluster_.parts("n2", 1).at(1) + "/record");
  ASSERT_EQ(explain(), 0);
  const auto cached = said_of("ckpt.1", "cache");
  EXPECT_TRUE(has(cached, part + "/files/ckpt.1/rank 4.1 has 3 bytes, ")) << out_;
  EXPECT_TRUE(has(cached, "rank.5/record is missing, damaged or not complete")) << out_;
  expect_forecast(1);
}

TEST_F(Explain, AFlippedByteThatNobodyHasReadIsVerifysToFind) {
  cluster_.write(four_nodes(), {1});
  flip(cluster_.parts("n2", 1).at(0) + "/files/ckpt.1/rank 4.1");
  for (const bool named : {false, true}) {
    const Names caches = {cluster_.node("n0"), cluster_.node("n1"), cluster_.node("n2")};
    ASSERT_EQ(explain(0, {}, named ? caches : Names{}), 0);
    EXPECT_EQ(follow(line_with("note: bytes were not compared with their checksums; ")),
              named ? exit_beyond_repair : exit_damaged)
        << out_ << told_;
    EXPECT_TRUE(shows("(ckpt.1) in the caches")) << out_;
    EXPECT_TRUE(shows("rank 4.1")) << out_;
  }
}

/// Of two datasets on a node, one cannot be listed; nor can all that another node has.
TEST_F(Explain, AFolderThatCannotBeListedCostsNothingElse) {
  cluster_.settings.stores[0].count = 2;
  cluster_.write(four_nodes(), {1, 2});
  const std::string dataset = fs::path(cluster_.parts("n1", 2).at(0)).parent_path();
  const std::string cache = fs::path(cluster_.parts("n3", 1).at(0)).parent_path().parent_path();
  const auto posix = make_posix_files();
  for (const std::string& broken : {dataset, cache}) {
    files_ = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
      if (operation.name != "list" || operation.path != broken) return {};
      return fail(Code::io, "injected: cannot list {}", operation.path);
    });
    ASSERT_EQ(explain(), 0) << told_;
    EXPECT_TRUE(shows("injected: cannot list " + broken)) << out_;
    for (const std::string name : {"ckpt.1", "ckpt.2"})
      EXPECT_TRUE(said_of(name, "cache").at("taken") == (name == "ckpt.2")) << out_;
  }
  files_ = make_posix_files();
}

TEST_F(Explain, WhereNothingIsVerifiedTheCachesAreNamed) {
  cluster_.write(four_nodes(), {1});
  EXPECT_EQ(verify_prefix(), 0);
  EXPECT_TRUE(shows("there is no dataset to verify in " + prefix())) << out_;
  EXPECT_EQ(follow(line_with("what is in caches is verified by ")), 0) << told_;
  EXPECT_TRUE(shows("(ckpt.1) in the caches: good")) << out_;
}

/// All that was given stays in the commands that are told.
TEST_F(Explain, WhatIsToBeTypedNamesThePrefixDirectoryAndTheCachesThatWereGiven) {
  cluster_.write_and_finalize({1, 2});
  cluster_.save("copy");
  cluster_.lose_all_nodes();
  fs::remove(cluster_.file(2, 5));
  ASSERT_EQ(explain(0, {}, {cluster_.saved("copy", "")}), 0) << told_;
  EXPECT_EQ(follow(line_with("-> cairn verify --repair ckpt.2")), exit_damaged) << out_ << told_;
  cluster_.expect_own_files(2);
  ASSERT_EQ(explain(), 0) << told_;
  EXPECT_EQ(follow(line_with("note: bytes were not compared with their checksums; ")), 0) << told_;
  EXPECT_TRUE(shows("(ckpt.2) in " + prefix() + ": good")) << out_;
}

TEST_F(Explain, WhatScrHasLeftIsToldUntilItIsTakenOver) {
  ScrPrefix scr(prefix());
  scr.add(1, 2);
  scr.add(2, 2);
  scr.add(3, 2).complete_in_summary = false;
  scr.write("ckpt.2");
  ASSERT_EQ(explain(), 0);
  const std::string note = "note: SCR 3 has left 2 datasets in " + prefix();
  EXPECT_EQ(follow(line_with(note)), exit_failure) << "one of them is not complete: " << told_;
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(out_.starts_with("a restart with 2 ranks would take dataset 2 (ckpt.2)")) << out_;
  EXPECT_FALSE(shows("SCR 3")) << out_;
}

TEST_F(Explain, WhatWasNotCompleteIsRemovedByARestart) {
  cluster_.write(four_nodes(), {1});
  cluster_.restart(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_output("ckpt.2", flag_checkpoint));
    ASSERT_TRUE(rank.write_files(2)) << "and the run dies here";
  });
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(shows("dataset 2, in the cache: it was not complete when its run ended")) << out_;
  expect_forecast(1);
}

/// All parts are prepared, and a rank on a node that is not seen may have committed.
TEST_F(Explain, WhatOnlyTheRanksThatWroteItCanJudgeIsKeptByOthers) {
  EXPECT_FALSE(cluster_.run(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    rank.hook = [](const FileOperation& operation) -> Status {
      const bool commits = operation.name == "rename" && operation.path.ends_with("/record.new");
      return commits ? throw Crash() : Status{};
    };
    (void)rank.write(1);
  }));
  ASSERT_EQ(explain(8), 0);
  EXPECT_TRUE(has(said_of("ckpt.1", "cache"), "a restart removes what is left")) << out_;
  ASSERT_EQ(explain(6), 0);
  const auto cached = said_of("ckpt.1", "cache");
  EXPECT_TRUE(has(cached, "only a run with 8 ranks")) << out_;
  EXPECT_TRUE(has(cached, "start with 8 ranks")) << out_;
  EXPECT_FALSE(has(cached, "removes")) << out_;
  const auto parts = cluster_.parts("n1", 1);
  expect_forecast(0, {"n0", "n0", "n1", "n1", "n2", "n3"});
  EXPECT_EQ(cluster_.parts("n1", 1), parts);
}

TEST_F(Explain, RecordsOfANewerFormatAreLeftAlone) {
  cluster_.write(four_nodes(), {1, 2, 3});
  for (const char* node : {"n0", "n1", "n2", "n3"})
    for (const std::string& part : cluster_.parts(node, 3)) {
      const Blob newer = seal(RecordType::rank, rank_record_version + 1, {});
      std::ofstream(part + "/record", std::ios::binary)
          .write(reinterpret_cast<const char*>(newer.data()),
                 static_cast<std::streamsize>(newer.size()));
    }
  ASSERT_EQ(explain(8), 0) << told_;
  EXPECT_TRUE(shows("dataset 3, in the cache: its records are in a newer format")) << out_;
  EXPECT_TRUE(shows("  -> start with the version of Cairn")) << out_;
  expect_forecast(2);
}

TEST_F(Explain, AnotherNumberOfRanksIsRefusedWithBothNumbers) {
  cluster_.write(four_nodes(), {1});
  ASSERT_EQ(explain(6), 0);
  EXPECT_TRUE(
      out_.starts_with("a restart with 6 ranks would fail: dataset 1 in the cache was "
                       "written by 8 ranks, and this run has 6"))
      << out_;
  EXPECT_TRUE(shows("  -> start with 8 ranks\n  -> or set CAIRN_ELASTIC=1")) << out_;
  cluster_.run_well({"n0", "n1", "n2", "n3", "n0", "n1"}, [&](JobRank& rank) {
    const auto found = rank.session->have_restart();
    ASSERT_FALSE(found);
    EXPECT_NE(out_.find(found.error().text), std::string::npos) << "the words of the job itself";
  });
  process_.environment["CAIRN_ON_MISMATCH"] = "fresh";
  ASSERT_EQ(explain(6), 0);
  EXPECT_TRUE(shows("a restart with 6 ranks would START FROM SCRATCH")) << out_;
  process_.environment["CAIRN_ON_MISMATCH"] = "refuse";
  process_.environment["CAIRN_ELASTIC"] = "1";
  ASSERT_EQ(explain(6), 0);
  const std::string first = line_with("a restart with 6 ranks would take dataset 1 (ckpt.1) from");
  EXPECT_NE(first.find("it is copied from the caches"), std::string::npos) << first;
  EXPECT_TRUE(said_of("ckpt.1", "cache").at("taken"));
  cluster_.settings.elastic = true;
  cluster_.run_well({"n0", "n1", "n2", "n3", "n0", "n1"}, [](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().value(), "ckpt.1");
  });
  std::filesystem::resize_file(cluster_.parts("n2", 1)[0] + "/files/ckpt.1/rank 4.0", 0);
  ASSERT_EQ(explain(6), 0);
  EXPECT_TRUE(out_.starts_with("a restart with 6 ranks would fail")) << out_;
  cluster_.run_well({"n0", "n1", "n2", "n3", "n0", "n1"}, [](JobRank& rank) {
    EXPECT_FALSE(rank.session->have_restart() && rank.session->start_restart());
    EXPECT_FALSE(rank.session->have_restart());
  });
}

TEST_F(Explain, SettingsThatPassDatasetsOverAreNamed) {
  cluster_.write(four_nodes(), {1, 2, 3});
  process_.environment["SCR_CACHE_PURGE"] = "1";
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(out_.starts_with("a restart with 8 ranks would take dataset 2")) << out_;
  EXPECT_TRUE(has(said_of("ckpt.3", "cache"), "SCR_CACHE_PURGE=1: a restart removes it")) << out_;
  process_.environment["SCR_FETCH"] = "0";
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(shows("FROM SCRATCH")) << out_;
  EXPECT_TRUE(has(said_of("ckpt.2", "prefix"), "SCR_FETCH=0 is set, so nothing is fetched"))
      << out_;
}

TEST_F(Explain, AJobThatIsRunningIsTold) {
  cluster_.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2);
    rank.comm.barrier();
    if (rank.number() == 0) {
      EXPECT_EQ(explain(), 0);
      EXPECT_TRUE(shows("using the cache " + cluster_.node("n0"))) << out_;
      EXPECT_TRUE(shows("note: job job of tester on n0 (process ")) << out_;
      EXPECT_TRUE(shows("may be running in " + prefix())) << out_;
    }
    rank.comm.barrier();
  });
}

/// The job makes the folder of a dataset, and then what is in it.
TEST_F(Explain, NothingIsTakenFromUnderARunningJob) {
  cluster_.write(four_nodes(), {1});
  const std::string begun = fs::path(cluster_.parts("n1", 1).at(0)).parent_path().parent_path() /
                            ("dataset.2." + text_of({1, 2}));
  fs::create_directory(begun);
  ASSERT_EQ(explain(), 0);
  EXPECT_EQ(verify_caches(), 0);
  EXPECT_TRUE(fs::exists(begun));
}

// --- the prefix directory ---

class ExplainPrefix : public DeadJob {
 protected:
  /// Two checkpoints there, and nothing in the caches.
  void SetUp() override {
    cluster_.write_and_finalize({1, 2, 3, 4});
    cluster_.lose_all_nodes();
  }

  std::string record_of(int dataset) const {
    const std::string folder = fmt::format("dataset.{}.", dataset);
    for (const auto& entry : fs::directory_iterator(prefix() + "/.cairn/datasets"))
      if (entry.path().filename().string().starts_with(folder)) return entry.path() / "dataset";
    ADD_FAILURE() << folder;
    return {};
  }

  template <class Action>
  void as_keeper(Action action) {
    OwnerRecord me;
    me.job_id = "job";
    me.user = "tester";
    auto keeper = Keeper::take_over(*files_, *clock_, {prefix()}, me);
    ASSERT_TRUE(keeper);
    action(*keeper);
    EXPECT_TRUE(keeper->save_listing());
    EXPECT_TRUE(keeper->resign());
  }
  static DatasetRecord named(const Keeper& keeper, const std::string& name) {
    for (const DatasetRecord& record : keeper.listing())
      if (record.info.name == name) return record;
    ADD_FAILURE() << name;
    return {};
  }
};

TEST_F(ExplainPrefix, TheCurrentOneIsTaken) {
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(out_.starts_with(
      "a restart with 8 ranks would take dataset 4 (ckpt.4) from the prefix directory\n"))
      << out_;
  EXPECT_TRUE(
      has(line_with("note: no cache of job job of tester "), "cairn scavenge --prefix " + prefix()))
      << out_;
  EXPECT_TRUE(said_of("ckpt.4", "prefix").at("taken")) << out_;
  as_keeper([](Keeper& keeper) { ASSERT_TRUE(keeper.set_current("ckpt.2")); });
  expect_forecast(2);
}

TEST_F(ExplainPrefix, ADamagedFileIsNamedOnceARunHasFailedOnIt) {
  flip(cluster_.file(4, 5));
  EXPECT_EQ(cluster_.restart(four_nodes()), 2);
  cluster_.lose_all_nodes();
  ASSERT_EQ(explain(), 0);
  const auto failed = said_of("ckpt.4", "prefix");
  EXPECT_TRUE(has(failed, "an earlier restart from it failed (20")) << out_;
  EXPECT_TRUE(has(failed, cluster_.file(4, 5) + " does not match its checksum")) << out_;
  EXPECT_TRUE(has(failed, "cairn verify --repair ckpt.4 --prefix " + prefix())) << out_;
  EXPECT_TRUE(has(failed, "then cairn index quarantine --lift ckpt.4 --prefix " + prefix()))
      << out_;
  EXPECT_TRUE(has(failed, "cairn index delete")) << "no cache can restore it: " << out_;
  expect_forecast(2);
}

TEST_F(ExplainPrefix, AFileThatIsRemovedOrCutIsSeenBeforeARunFailsOnIt) {
  for (const int dataset : {4, 2}) {
    if (dataset == 4)
      fs::remove(cluster_.file(dataset, 5));
    else
      fs::resize_file(cluster_.file(dataset, 5), 10);
    const int next = dataset == 4 ? 2 : 0;
    ASSERT_EQ(explain(), 0);
    const auto bad = said_of(fmt::format("ckpt.{}", dataset), "prefix");
    EXPECT_TRUE(has(bad, cluster_.file(dataset, 5))) << out_;
    EXPECT_TRUE(has(bad, "a restart would mark it as failed and take the next older")) << out_;
    expect_forecast(next);
    cluster_.lose_all_nodes();
  }
}

TEST_F(ExplainPrefix, ThatAFailureStopsARunIsForetold) {
  fs::remove(cluster_.file(4, 5));
  process_.environment["CAIRN_ON_FETCH_FAIL"] = "stop";
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(out_.starts_with("a restart with 8 ranks would fail: dataset 4 (ckpt.4) in " +
                               prefix() + " cannot be used: "))
      << out_;
  EXPECT_TRUE(shows("because CAIRN_ON_FETCH_FAIL=stop")) << "as the job says it: " << out_;
}

TEST_F(ExplainPrefix, QuarantinedAndDroppedOnesAreToldWithTheWayBack) {
  as_keeper([](Keeper& keeper) {
    DatasetRecord record = named(keeper, "ckpt.4");
    record.quarantined = true;
    record.attempts = 3;
    ASSERT_TRUE(keeper.update(record));
    ASSERT_TRUE(keeper.drop(named(keeper, "ckpt.2").info));
  });
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(out_.starts_with(
      "a restart with 8 ranks would START FROM SCRATCH: there is a checkpoint, but "
      "dataset 4 (ckpt.4) is not used"))
      << out_;
  EXPECT_TRUE(shows(
      "it is in quarantine, because 3 restarts from it have died\n  -> cairn index quarantine "
      "--lift ckpt.4 --prefix " +
      prefix()))
      << out_;
  EXPECT_TRUE(shows(
      "dataset 2 (ckpt.2), dropped: it was dropped by cairn index drop; no restart takes it\n  -> "
      "cairn index add ckpt.2 --prefix " +
      prefix()))
      << out_;
  expect_forecast(0);
}

TEST_F(ExplainPrefix, VerifySaysOfGoodBytesThatNoRestartUsesThem) {
  EXPECT_EQ(verify_prefix(false, {"ckpt.4"}), exit_ok);
  EXPECT_FALSE(shows("no restart")) << out_;
  as_keeper([](Keeper& keeper) {
    DatasetRecord failed = named(keeper, "ckpt.4");
    failed.failed_us = 5'000'000;
    failed.failure = "the disk was full";
    ASSERT_TRUE(keeper.update(failed));
    DatasetRecord quarantined = named(keeper, "ckpt.2");
    quarantined.quarantined = true;
    ASSERT_TRUE(keeper.update(quarantined));
  });
  EXPECT_EQ(verify_prefix(false, {"ckpt.4"}), exit_ok);
  EXPECT_TRUE(shows("good: ") && shows("an earlier restart from it failed (") &&
              shows("the disk was full"))
      << out_;
  EXPECT_TRUE(shows("cairn index quarantine --lift")) << out_;
  EXPECT_EQ(verify_prefix(false, {"ckpt.2"}), exit_ok);
  EXPECT_TRUE(shows("no restart uses it: it is in quarantine")) << out_;
  flip(cluster_.file(4, 5));
  EXPECT_NE(verify_prefix(false, {"ckpt.4"}), exit_ok);
  EXPECT_FALSE(shows("no restart uses it")) << "that is said of good bytes only: " << out_;
}

TEST_F(ExplainPrefix, AQuarantinedOneOfTheCacheIsTold) {
  cluster_.settings.restart_attempts = 1;
  cluster_.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(5); });
  cluster_.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->have_restart());
    ASSERT_TRUE(rank.session->start_restart()) << "and the run dies here";
  });
  ASSERT_EQ(explain(), 0);
  const auto cached = said_of("ckpt.5", "cache");
  EXPECT_TRUE(has(cached, "it is in quarantine, because 1 restart from it has died")) << out_;
  EXPECT_TRUE(has(cached, "cairn index quarantine --lift ckpt.5 --prefix " + prefix())) << out_;
  expect_forecast(4);
}

TEST_F(ExplainPrefix, ARecordThatCannotBeReadIsTold) {
  fs::remove(prefix() + "/.cairn/listing");
  std::ofstream(record_of(4), std::ios::binary) << "no record";
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(shows("note: a dataset in the prefix directory cannot be used: " + record_of(4)))
      << out_;
  expect_forecast(2);
}

/// It may be a good one; where no other is left, no run begins without it.
TEST_F(ExplainPrefix, ARecordThatMayBeGoodStopsARunThatHasNoOther) {
  const Blob newer = seal(RecordType::dataset, dataset_record_version + 1, {});
  for (const int dataset : {4, 2}) {
    fs::remove(prefix() + "/.cairn/listing");
    std::ofstream(record_of(dataset), std::ios::binary)
        << std::string(reinterpret_cast<const char*>(newer.data()), newer.size());
    ASSERT_EQ(explain(8), 0);
    const std::string note = "note: a dataset in the prefix directory cannot be read now: ";
    ASSERT_TRUE(shows(note + record_of(dataset))) << out_;
    if (dataset == 4) {
      process_.environment["CAIRN_ON_FETCH_FAIL"] = "stop";
      ASSERT_EQ(explain(8), 0);
      EXPECT_TRUE(out_.starts_with("a restart with 8 ranks would fail: ")) << out_;
      process_.environment.erase("CAIRN_ON_FETCH_FAIL");
      expect_forecast(2);
      cluster_.lose_all_nodes();
    }
  }
  EXPECT_TRUE(out_.starts_with("a restart with 8 ranks would fail: there may be")) << out_;
  cluster_.run_well(four_nodes(),
                    [](JobRank& rank) { EXPECT_FALSE(rank.session->have_restart()); });
}

/// The cache and the prefix directory have it.
TEST_F(ExplainPrefix, WhatIsInBothIsTakenFromTheCache) {
  EXPECT_EQ(cluster_.restart(four_nodes()), 4);
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(shows("would take dataset 4 (ckpt.4) from the cache")) << out_;
  EXPECT_TRUE(has(said_of("ckpt.4", "prefix"), "; a restart takes it from the cache")) << out_;
  expect_forecast(4);
}

TEST_F(ExplainPrefix, WhatIsOnlyInTheCacheIsCopiedFirstWhereRestartsAreGlobal) {
  cluster_.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(5); });
  process_.environment["SCR_GLOBAL_RESTART"] = "1";
  ASSERT_EQ(explain(), 0);
  const std::string first = line_with("would take dataset 5 (ckpt.5) from the prefix directory");
  EXPECT_NE(first.find("it is copied from the caches"), std::string::npos) << first;
  EXPECT_TRUE(said_of("ckpt.5", "cache").at("taken"));
}

/// What is asked for comes first, whatever has become of it.
TEST_F(ExplainPrefix, TheOneThatTheUserNamesIsTaken) {
  process_.environment["SCR_CURRENT"] = "ckpt.2";
  cluster_.settings.current = "ckpt.2";
  expect_forecast(2);
  process_.environment["SCR_CURRENT"] = "ckpt.9";
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(shows("note: SCR_CURRENT=ckpt.9: there is no such checkpoint in " + prefix()))
      << out_;
}

TEST_F(ExplainPrefix, WhatWasScavengedIsForRebuild) {
  cluster_.settings.job_id = "other";  // its caches are not seen under its own name
  cluster_.run_well(four_nodes(), [](JobRank& rank) { rank.expect_written(5); });
  for (const std::string node : {"n0", "n2", "n3"}) {
    fs::create_directories(prefix() + "/.cairn/scavenged");
    fs::copy(cluster_.job_folder(node), prefix() + "/.cairn/scavenged/" + node,
             fs::copy_options::recursive);
  }
  ASSERT_EQ(explain(), 0);
  const auto scavenged = said_of("ckpt.5", "scavenged");
  EXPECT_TRUE(has(scavenged, "it was scavenged, and can be made whole")) << out_;
  EXPECT_TRUE(has(scavenged, "cairn rebuild --prefix " + prefix())) << out_;
  EXPECT_TRUE(shows("would take dataset 4 (ckpt.4)")) << "until that is done" << out_;
  EXPECT_TRUE(shows("note: job other of tester on n0 (process ")) << out_;
  EXPECT_TRUE(shows("another job ")) << out_;
  fs::remove_all(prefix() + "/.cairn/scavenged/n0");
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.5", "scavenged"),
                  "cannot be made whole: data of rank 2 (written on n1), rank 0 (written on n0)"))
      << out_;
}

TEST_F(ExplainPrefix, ScrsCommandRebuildsTheScavengedDatasetOfANumber) {
  cluster_.settings.job_id = "other";
  cluster_.run_well(four_nodes(), [](JobRank& rank) { rank.expect_written(5); });
  for (const std::string node : {"n0", "n2", "n3"}) {
    fs::create_directories(prefix() + "/.cairn/scavenged");
    fs::copy(cluster_.job_folder(node), prefix() + "/.cairn/scavenged/" + node,
             fs::copy_options::recursive);
  }
  IndexCommand command;
  command.action = IndexCommand::Action::build;
  command.number = 5;
  command.force = true;
  std::ostringstream out;
  const Log log([this](Severity, const std::string& text) { told_ += text + "\n"; });
  EXPECT_EQ(run_index_command(command, *files_, *clock_, process_, out, log), 0) << told_;
  EXPECT_EQ(cluster_.listed().front(), "ckpt.5") << out.str();
}

/// A rebuild leaves it alone, so that is not what to do.
TEST_F(ExplainPrefix, WhatWasScavengedAndIsNotWantedIsNotForRebuild) {
  ASSERT_EQ(cluster_.restart(four_nodes()), 4);  // its caches have it
  const auto change = [&](IndexCommand::Action action) {
    IndexCommand command;
    command.action = action;
    command.name = "ckpt.4";
    command.force = true;  // its owner is dead
    std::ostringstream out;
    ASSERT_EQ(run_index_command(command, *files_, *clock_, process_, out, Log()), 0);
    for (const std::string node : {"n0", "n1", "n2", "n3"}) {
      fs::create_directories(prefix() + "/.cairn/scavenged");
      fs::copy(cluster_.job_folder(node), prefix() + "/.cairn/scavenged/" + node,
               fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    }
    ASSERT_EQ(explain(), 0);
  };
  change(IndexCommand::Action::drop);
  for (const std::string word : {"dropped", "deleted"}) {
    const auto scavenged = said_of("ckpt.4", "scavenged");
    EXPECT_TRUE(has(scavenged, "later " + word)) << out_;
    EXPECT_FALSE(has(scavenged, "cairn rebuild --prefix")) << out_;
    EXPECT_TRUE(has(scavenged, "cairn index delete ")) << out_;
    EXPECT_EQ(has(scavenged, "cairn index add ckpt.4 "), word == "dropped") << out_;
    if (word == "dropped") change(IndexCommand::Action::remove);
  }
}

// --- caches that runs do not use ---

/// A checkpoint that is in the caches only.
class ExplainLeftCaches : public DeadJob {
 protected:
  ExplainLeftCaches() {
    cluster_.settings.flush_interval = 0;
    cluster_.write(four_nodes(), {1});
  }
  void expect_named_and_given_back() {
    ASSERT_EQ(explain(), 0) << told_;
    EXPECT_TRUE(out_.starts_with("a restart would START FROM SCRATCH, although")) << out_;
    EXPECT_TRUE(has(json_.at("notes"), "cairn index id ")) << out_;
    EXPECT_EQ(json_.at("caches").size(), 0U) << out_;
    verify_prefix();
    EXPECT_TRUE(told("cairn index id ")) << told_;
    EXPECT_EQ(follow_index_id(told_), 0) << told_;
    expect_forecast(1);
  }
};

TEST_F(ExplainLeftCaches, AreNamedWhereTheIdWasLost) {
  fs::remove_all(prefix() + "/.cairn");
  expect_named_and_given_back();
}

TEST_F(ExplainLeftCaches, AreNamedWhereTheDirectoryHasANewId) {
  fs::remove_all(prefix() + "/.cairn");
  ASSERT_TRUE(replace_prefix_id(*files_, *clock_, prefix(), PrefixId{7}));
  expect_named_and_given_back();
}

TEST_F(ExplainLeftCaches, AreNamedWhereTheDirectoryIsACopy) {
  const std::string copy = cluster_.node("copy");
  fs::copy(prefix(), copy, fs::copy_options::recursive);
  fs::remove_all(prefix());
  process_.environment["SCR_PREFIX"] = cluster_.settings.prefix = copy;
  expect_named_and_given_back();
}

TEST_F(ExplainLeftCaches, GivenToACopyAreGivenWithAWarningIfTheOriginalIsThere) {
  const std::string original = prefix();
  const std::string copy = cluster_.node("copy");
  fs::copy(original, copy, fs::copy_options::recursive);
  process_.environment["SCR_PREFIX"] = cluster_.settings.prefix = copy;
  verify_prefix();
  EXPECT_EQ(follow_index_id(told_), 0) << told_;
  EXPECT_TRUE(told(original + " has the id")) << told_;
  expect_forecast(1);
}

TEST_F(ExplainLeftCaches, AreNotThoseOfTheDirectoryItself) {
  ASSERT_EQ(explain(), 0) << told_;
  EXPECT_FALSE(shows("cairn index id")) << out_;
  expect_forecast(1);
}

// --- both, and neither ---

TEST_F(Explain, AnUnfinishedFlushIsEndedWhereItsPartsAreStillThere) {
  cluster_.lose_node_that_has_flushed();
  ASSERT_EQ(explain(), 0);
  const auto flush = said_of("ckpt.4", "unfinished flush");
  EXPECT_TRUE(has(flush, "the next run finishes it")) << out_;
  EXPECT_TRUE(flush.at("taken")) << out_;
  expect_forecast(4);
}

/// Of an older one that cannot be read files may still have to be given their names.
TEST_F(Explain, AnUnfinishedFlushWaitsForARecordThatMayBeGood) {
  cluster_.lose_node_that_has_flushed();
  fs::remove(prefix() + "/.cairn/listing");
  const Blob newer = seal(RecordType::dataset, dataset_record_version + 1, {});
  for (const auto& dataset : fs::directory_iterator(prefix() + "/.cairn/datasets")) {
    std::ofstream(dataset.path() / "dataset", std::ios::binary)
        << std::string(reinterpret_cast<const char*>(newer.data()), newer.size());
    fs::create_directory(PrefixFolder::markers(dataset.path()));
  }
  process_.environment["SCR_CURRENT"] = cluster_.settings.current = "ckpt.2";
  ASSERT_EQ(explain(8), 0);
  EXPECT_TRUE(has(said_of("ckpt.4", "unfinished flush"), "no run can finish it now")) << out_;
  EXPECT_TRUE(shows("SCR_CURRENT=ckpt.2: it is unknown whether there is a")) << out_;
  EXPECT_TRUE(out_.starts_with("a restart with 8 ranks would fail: there may be")) << out_;
  cluster_.run_well(four_nodes(),
                    [](JobRank& rank) { EXPECT_FALSE(rank.session->have_restart()); });
}

TEST_F(Explain, AnUnfinishedFlushWhosePartsAreLostIsGivenUp) {
  cluster_.lose_node_that_has_flushed();
  cluster_.lose("n0");
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.4", "unfinished flush"), "do not have the rest")) << out_;
  expect_forecast(2);
}

TEST_F(Explain, NoDatasetAtAllAndNoPrefixDirectory) {
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(out_.starts_with("a restart would start from scratch: there is no dataset\n"))
      << out_;
  fs::remove_all(prefix());
  EXPECT_EQ(explain(), 1);
  EXPECT_TRUE(told(prefix())) << told_;
}

TEST_F(Explain, ADirectoryInWhichNoJobHasWorkedIsNoAnswer) {
  process_.environment.erase("SCR_JOB_ID");
  EXPECT_EQ(explain(), 1);
  EXPECT_TRUE(told("no job has worked in " + prefix())) << told_;
  fs::create_directory(prefix() + "/step.1");
  EXPECT_EQ(explain(0, {"step.1"}), 1);
  EXPECT_TRUE(told("--prefix step.1")) << told_;
  EXPECT_EQ(explain(0, {}, {prefix()}), 0) << "--cache asks about that directory";
  process_.environment["SCR_JOB_ID"] = "job";
  EXPECT_EQ(explain(), 0) << "a job that has not begun";
  process_.environment.erase("SCR_JOB_ID");
  fs::create_directory(prefix() + "/.cairn");
  EXPECT_EQ(explain(), 0);
}

TEST_F(Explain, AWordThatIsADirectoryIsToldWithItsOption) {
  cluster_.write(four_nodes(), {1});
  EXPECT_EQ(explain(0, {cluster_.node("n1")}), 1);
  EXPECT_TRUE(told("--prefix " + cluster_.node("n1"))) << told_;
  EXPECT_EQ(verify_prefix(false, {cluster_.node("n1")}), 1);
  EXPECT_TRUE(told("--prefix " + cluster_.node("n1"))) << told_;
  EXPECT_EQ(explain(0, {"ckpt.9"}), 1);
  EXPECT_FALSE(told("--prefix")) << told_;
}

/// Unless the run has left its newest checkpoint in the caches, or died.
TEST_F(Explain, AfterTheEndOfTheJobNothingIsToBeSaved) {
  cluster_.settings.flush_interval = 1;
  const auto note = [this] {
    EXPECT_EQ(explain(), 0) << told_;
    return line_with("note: no cache of job job of tester ");
  };
  LastRunRecord run;
  run.job_id = "job";
  run.user = "tester";
  run.prefix = prefix();
  run.host = "login";
  run.started_us = 1;
  const auto keep = [&](std::int64_t ended_us) {
    run.ended_us = ended_us;
    ASSERT_TRUE(keep_last_run(*files_, *clock_, PrefixFolder{prefix()}, run));
  };
  keep(2);
  EXPECT_NE(note().find("scavenge"), std::string::npos) << "nothing is in the prefix directory";
  cluster_.write(four_nodes(), {1});
  cluster_.lose_all_nodes();
  keep(0);
  EXPECT_NE(note().find("scavenge"), std::string::npos) << out_;
  keep(2);
  EXPECT_EQ(note().find("scavenge"), std::string::npos) << out_;
  process_.environment["SCR_FLUSH"] = "0";
  EXPECT_NE(note().find("scavenge"), std::string::npos) << out_;
}

/// As of a run on simulated nodes, whose storage is deleted with them.
TEST_F(Explain, WhatTheNodesOfOneMachineHaveLostCannotBeSaved) {
  const auto was_on = [this](const std::string& host, std::string store = {}) {
    LastRunRecord run;
    run.job_id = "job";
    run.user = "tester";
    run.prefix = prefix();
    run.host = "login";
    run.stores = {{store.empty() ? cluster_.node("%n") : std::move(store), false}};
    for (const char* name : {"n0", "n1", "n2", "n3"}) run.nodes.push_back({name, host, 2});
    run.started_us = 1;
    ASSERT_TRUE(keep_last_run(*files_, *clock_, PrefixFolder{prefix()}, run));
  };
  const auto advises_the_nodes = [this] {
    EXPECT_EQ(explain(), 0) << told_;
    return shows("cairn scavenge") || shows("start again with the nodes");
  };
  cluster_.write(four_nodes(), {1, 2, 3});
  cluster_.lose("n1");
  cluster_.lose("n2");
  was_on("other");
  EXPECT_TRUE(advises_the_nodes()) << out_;
  was_on("login");
  EXPECT_FALSE(advises_the_nodes()) << out_;
  EXPECT_TRUE(shows("n1, n2 are lost")) << out_;
  EXPECT_FALSE(said_of("ckpt.3", "cache").at("usable"));
  ASSERT_EQ(explain(0, {}, {cluster_.node("n0")}), 0);
  EXPECT_TRUE(shows("cairn scavenge")) << "not all caches were looked at\n" << out_;
  was_on("login", "/ssd/%n");
  EXPECT_TRUE(advises_the_nodes()) << "SCR_CACHE_BASE names another store\n" << out_;
  was_on("login");
  cluster_.lose_all_nodes();
  EXPECT_FALSE(advises_the_nodes()) << out_;
  was_on("other");
  EXPECT_TRUE(advises_the_nodes()) << out_;
}

TEST_F(Explain, OneDatasetIsFoundByNameNumberAndUuid) {
  cluster_.write(four_nodes(), {1, 2, 3});
  ASSERT_EQ(explain(), 0);
  const std::string uuid = said_of("ckpt.2", "prefix").at("uuid");
  for (const std::string& name : {std::string("ckpt.2"), std::string("2"), uuid}) {
    ASSERT_EQ(explain(0, {name}), 0) << name;
    EXPECT_EQ(json_.at("datasets").size(), 1U) << name;
    EXPECT_EQ(json_.at("datasets")[0].at("number"), 2);
    EXPECT_TRUE(out_.starts_with("a restart with 8 ranks would take dataset 3")) << out_;
  }
  EXPECT_EQ(explain(0, {"ckpt.9"}), 1);
  EXPECT_TRUE(told("no such dataset: ckpt.9")) << told_;
}

}  // namespace
}  // namespace cairn
