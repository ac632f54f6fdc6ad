// What `cairn explain` foretells is what the job does, for every failure it can meet; and it
// changes nothing.
#include "dead_job.hpp"
#include "prefix/last_run_file.hpp"
#include "support/scr_prefix.hpp"
#include "tools/exit_codes.hpp"
#include "tools/index/index_command.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

class Explain : public DeadJob {};

// --- the caches ---

TEST_F(Explain, TheNewestCheckpointOfTheCacheIsTaken) {
  bed_.write(four_nodes(), {1, 2, 3});
  const auto before = contents_below(bed_.node(""));
  ASSERT_EQ(explain(), 0) << logged();
  EXPECT_TRUE(
      printed().starts_with("a restart with 8 ranks would take dataset 3 (ckpt.3) from the cache"))
      << printed();
  EXPECT_TRUE(said_of("ckpt.3", "cache").at("taken")) << printed();
  EXPECT_TRUE(said_of("ckpt.2", "prefix").at("usable")) << printed();
  EXPECT_FALSE(said_of("ckpt.2", "prefix").at("taken")) << printed();
  EXPECT_EQ(json_.at("outcome"), "cache");
  EXPECT_EQ(contents_below(bed_.node("")), before);
  expect_forecast(3);
}

TEST_F(Explain, ALostNodeIsNamedAndTheSchemeThatBringsItBack) {
  bed_.write(four_nodes(), {1});
  bed_.lose("n1");
  ASSERT_EQ(explain(), 0) << logged();
  const auto cached = said_of("ckpt.1", "cache");
  for (const char* words : {"rank 2 (written on n1)", "rank 3 (written on n1)", "XOR"})
    EXPECT_TRUE(has(cached, words)) << words << " in\n" << printed();
  EXPECT_TRUE(prints("note: data written on n1 ")) << printed();
  EXPECT_TRUE(has(json_.at("notes"), "cairn scavenge --prefix " + prefix())) << printed();
  expect_forecast(1, replaced(four_nodes(), "n1", "n9"));
}

TEST_F(Explain, MoreLostNodesThanTheSchemeHoldsAreNamedWithTheirSets) {
  bed_.write(four_nodes(), {1, 2, 3});
  bed_.lose("n1");
  bed_.lose("n2");
  ASSERT_EQ(explain(), 0) << logged();
  const auto cached = said_of("ckpt.3", "cache");
  EXPECT_FALSE(cached.at("usable"));
  for (const char* words :
       {"it cannot be made whole: data of rank 2 (written on n1), rank 4 (written on n2) in the "
        "set of "
        "ranks 0,2,4,6",
        "rank 5 (written on n2), rank 3 (written on n1) in the set of ranks 1,3,5,7",
        "start again with the nodes it was written on", "cairn scavenge --prefix "})
    EXPECT_TRUE(has(cached, words)) << words << " in\n" << printed();
  EXPECT_TRUE(said_of("ckpt.2", "prefix").at("taken"));
  expect_forecast(2);
}

TEST_F(Explain, ARankWhoseRecordIsLostIsNamed) {
  bed_.settings.checkpoints[0].scheme = Scheme::single;
  bed_.write(four_nodes(), {1});
  fs::remove_all(bed_.parts("n1", 1).at(0));
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.1", "cache"), "no intact record of rank 2 is left on any node"))
      << printed();
  expect_forecast(0);
}

TEST_F(Explain, MissingFilesAndRecordsOfTheCacheAreNamed) {
  bed_.write(four_nodes(), {1});
  const std::string part = bed_.parts("n2", 1).at(0);
  fs::resize_file(part + "/files/ckpt.1/rank 4.1", 3);
  fs::remove(bed_.parts("n2", 1).at(1) + "/record");
  ASSERT_EQ(explain(), 0);
  const auto cached = said_of("ckpt.1", "cache");
  EXPECT_TRUE(has(cached, part + "/files/ckpt.1/rank 4.1 has 3 bytes, ")) << printed();
  EXPECT_TRUE(has(cached, "rank.5/record is missing, damaged or not complete")) << printed();
  expect_forecast(1);
}

TEST_F(Explain, AFlippedByteThatNoCommandHasReadIsFoundByVerify) {
  bed_.write(four_nodes(), {1});
  flip_bit(bed_.parts("n2", 1).at(0) + "/files/ckpt.1/rank 4.1");
  for (const bool named : {false, true}) {
    const Names caches = {bed_.node("n0"), bed_.node("n1"), bed_.node("n2")};
    ASSERT_EQ(explain(0, {}, named ? caches : Names{}), 0);
    EXPECT_EQ(follow(line_with("note: bytes were not compared with their checksums; ")),
              named ? exit_beyond_repair : exit_damaged)
        << printed() << logged();
    EXPECT_TRUE(prints("(ckpt.1) in the caches")) << printed();
    EXPECT_TRUE(prints("rank 4.1")) << printed();
  }
}

/// Of two datasets on a node, one cannot be listed; nor can all that another node has.
TEST_F(Explain, AFolderThatCannotBeListedCostsNothingElse) {
  bed_.settings.stores[0].count = 2;
  bed_.write(four_nodes(), {1, 2});
  const std::string dataset = fs::path(bed_.parts("n1", 2).at(0)).parent_path();
  const std::string cache = fs::path(bed_.parts("n3", 1).at(0)).parent_path().parent_path();
  const auto posix = make_posix_files();
  for (const std::string& broken : {dataset, cache}) {
    files_ = make_hooked_files(*posix, [&](const FileOperation& operation) -> Status {
      if (operation.name != "list" || operation.path != broken) return {};
      return fail(Code::io, "injected: cannot list {}", operation.path);
    });
    ASSERT_EQ(explain(), 0) << logged();
    EXPECT_TRUE(prints("injected: cannot list " + broken)) << printed();
    for (const std::string name : {"ckpt.1", "ckpt.2"})
      EXPECT_TRUE(said_of(name, "cache").at("taken") == (name == "ckpt.2")) << printed();
  }
  files_ = make_posix_files();
}

TEST_F(Explain, WhereNothingIsVerifiedTheCachesAreNamed) {
  bed_.write(four_nodes(), {1});
  EXPECT_EQ(verify_prefix(), 0);
  EXPECT_TRUE(prints("there is no dataset to verify in " + prefix())) << printed();
  EXPECT_EQ(follow(line_with("what is in caches is verified by ")), 0) << logged();
  EXPECT_TRUE(prints("(ckpt.1) in the caches: good")) << printed();
}

/// All that was given stays in the commands that are recommended.
TEST_F(Explain, WhatIsToBeTypedNamesThePrefixDirectoryAndTheCachesThatWereGiven) {
  bed_.write_and_finalize({1, 2});
  bed_.save("copy");
  bed_.lose_all_nodes();
  fs::remove(bed_.file(2, 5));
  ASSERT_EQ(explain(0, {}, {bed_.saved("copy", "")}), 0) << logged();
  EXPECT_EQ(follow(line_with("-> cairn verify --repair ckpt.2")), exit_damaged)
      << printed() << logged();
  bed_.expect_own_files(2);
  ASSERT_EQ(explain(), 0) << logged();
  EXPECT_EQ(follow(line_with("note: bytes were not compared with their checksums; ")), 0)
      << logged();
  EXPECT_TRUE(prints("(ckpt.2) in " + prefix() + ": good")) << printed();
}

TEST_F(Explain, WhatScrHasLeftIsReportedUntilItIsTakenOver) {
  ScrPrefix scr(prefix());
  scr.add(1, 2);
  scr.add(2, 2);
  scr.add(3, 2).complete_in_summary = false;
  scr.write("ckpt.2");
  ASSERT_EQ(explain(), 0);
  const std::string note = "note: SCR 3 has left 2 datasets in " + prefix();
  EXPECT_EQ(follow(line_with(note)), exit_failure) << "one of them is not complete: " << logged();
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(printed().starts_with("a restart with 2 ranks would take dataset 2 (ckpt.2)"))
      << printed();
  EXPECT_FALSE(prints("SCR 3")) << printed();
}

TEST_F(Explain, WhatWasNotCompleteIsRemovedByARestart) {
  bed_.write(four_nodes(), {1});
  bed_.restart(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_output("ckpt.2", flag_checkpoint));
    ASSERT_TRUE(rank.write_files(2)) << "and the run dies here";
  });
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(prints("dataset 2, in the cache: it was not complete when its run ended"))
      << printed();
  expect_forecast(1);
}

/// All parts are prepared, and a rank on a node that is not seen may have committed.
TEST_F(Explain, WhatOnlyTheRanksThatWroteItCanJudgeIsKeptByOthers) {
  EXPECT_FALSE(bed_.run(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    rank.hook = [](const FileOperation& operation) -> Status {
      const bool commits = operation.name == "rename" && operation.path.ends_with("/record.new");
      return commits ? throw Crash() : Status{};
    };
    (void)rank.write(1);
  }));
  ASSERT_EQ(explain(8), 0);
  EXPECT_TRUE(has(said_of("ckpt.1", "cache"), "a restart removes what is left")) << printed();
  ASSERT_EQ(explain(6), 0);
  const auto cached = said_of("ckpt.1", "cache");
  EXPECT_TRUE(has(cached, "only a run with 8 ranks")) << printed();
  EXPECT_TRUE(has(cached, "start with 8 ranks")) << printed();
  EXPECT_FALSE(has(cached, "removes")) << printed();
  const auto parts = bed_.parts("n1", 1);
  expect_forecast(0, {"n0", "n0", "n1", "n1", "n2", "n3"});
  EXPECT_EQ(bed_.parts("n1", 1), parts);
}

TEST_F(Explain, RecordsOfANewerFormatAreLeftAlone) {
  bed_.write(four_nodes(), {1, 2, 3});
  for (const char* node : {"n0", "n1", "n2", "n3"})
    for (const std::string& part : bed_.parts(node, 3)) {
      const Blob newer = seal(RecordType::rank, rank_record_version + 1, {});
      std::ofstream(part + "/record", std::ios::binary)
          .write(reinterpret_cast<const char*>(newer.data()),
                 static_cast<std::streamsize>(newer.size()));
    }
  ASSERT_EQ(explain(8), 0) << logged();
  EXPECT_TRUE(prints("dataset 3, in the cache: its records are in a newer format")) << printed();
  EXPECT_TRUE(prints("  -> start with the version of Cairn")) << printed();
  expect_forecast(2);
}

TEST_F(Explain, AnotherNumberOfRanksIsRefusedWithBothNumbers) {
  bed_.write(four_nodes(), {1});
  ASSERT_EQ(explain(6), 0);
  EXPECT_TRUE(
      printed().starts_with("a restart with 6 ranks would fail: dataset 1 in the cache was "
                            "written by 8 ranks, and this run has 6"))
      << printed();
  EXPECT_TRUE(prints("  -> start with 8 ranks\n  -> or set CAIRN_ELASTIC=1")) << printed();
  bed_.run_well({"n0", "n1", "n2", "n3", "n0", "n1"}, [&](JobRank& rank) {
    const auto found = rank.session->have_restart();
    ASSERT_FALSE(found);
    EXPECT_TRUE(prints(found.error().text)) << "the words of the job itself";
  });
  process_.environment["CAIRN_ON_MISMATCH"] = "fresh";
  ASSERT_EQ(explain(6), 0);
  EXPECT_TRUE(prints("a restart with 6 ranks would START FROM SCRATCH")) << printed();
  process_.environment["CAIRN_ON_MISMATCH"] = "refuse";
  process_.environment["CAIRN_ELASTIC"] = "1";
  ASSERT_EQ(explain(6), 0);
  const std::string first = line_with("a restart with 6 ranks would take dataset 1 (ckpt.1) from");
  EXPECT_NE(first.find("it is copied from the caches"), std::string::npos) << first;
  EXPECT_TRUE(said_of("ckpt.1", "cache").at("taken"));
  bed_.settings.elastic = true;
  bed_.run_well({"n0", "n1", "n2", "n3", "n0", "n1"},
                [](JobRank& rank) { EXPECT_EQ(rank.session->have_restart().value(), "ckpt.1"); });
  std::filesystem::resize_file(bed_.parts("n2", 1)[0] + "/files/ckpt.1/rank 4.0", 0);
  ASSERT_EQ(explain(6), 0);
  EXPECT_TRUE(printed().starts_with("a restart with 6 ranks would fail")) << printed();
  bed_.run_well({"n0", "n1", "n2", "n3", "n0", "n1"}, [](JobRank& rank) {
    EXPECT_FALSE(rank.session->have_restart() && rank.session->start_restart());
    EXPECT_FALSE(rank.session->have_restart());
  });
}

TEST_F(Explain, SettingsThatPassDatasetsOverAreNamed) {
  bed_.write(four_nodes(), {1, 2, 3});
  process_.environment["SCR_CACHE_PURGE"] = "1";
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(printed().starts_with("a restart with 8 ranks would take dataset 2")) << printed();
  EXPECT_TRUE(has(said_of("ckpt.3", "cache"), "SCR_CACHE_PURGE=1: a restart removes it"))
      << printed();
  process_.environment["SCR_FETCH"] = "0";
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(prints("FROM SCRATCH")) << printed();
  EXPECT_TRUE(has(said_of("ckpt.2", "prefix"), "SCR_FETCH=0 is set, so nothing is fetched"))
      << printed();
}

TEST_F(Explain, AJobThatIsRunningIsReported) {
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2);
    rank.comm.barrier();
    if (rank.number() == 0) {
      EXPECT_EQ(explain(), 0);
      EXPECT_TRUE(prints("using the cache " + bed_.node("n0"))) << printed();
      EXPECT_TRUE(prints("note: job job of tester on n0 (process ")) << printed();
      EXPECT_TRUE(prints("may be running in " + prefix())) << printed();
    }
    rank.comm.barrier();
  });
}

/// The job makes the folder of a dataset, and then what is in it.
TEST_F(Explain, NothingIsTakenFromUnderARunningJob) {
  bed_.write(four_nodes(), {1});
  const std::string begun = fs::path(bed_.parts("n1", 1).at(0)).parent_path().parent_path() /
                            ("dataset.2." + text_of({1, 2}));
  fs::create_directory(begun);
  ASSERT_EQ(explain(), 0);
  EXPECT_EQ(verify_caches(), 0);
  EXPECT_TRUE(fs::exists(begun));
}

// --- the prefix directory ---

class ExplainPrefix : public DeadJob {
 protected:
  /// The prefix directory has checkpoints 2 and 4; the caches are empty.
  void SetUp() override {
    bed_.write_and_finalize({1, 2, 3, 4});
    bed_.lose_all_nodes();
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
    for (const DatasetRecord& record : keeper.known().listing)
      if (record.info.name == name) return record;
    ADD_FAILURE() << name;
    return {};
  }
};

TEST_F(ExplainPrefix, TheCurrentOneIsTaken) {
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(printed().starts_with(
      "a restart with 8 ranks would take dataset 4 (ckpt.4) from the prefix directory\n"))
      << printed();
  EXPECT_TRUE(
      has(line_with("note: no cache of job job of tester "), "cairn scavenge --prefix " + prefix()))
      << printed();
  EXPECT_TRUE(said_of("ckpt.4", "prefix").at("taken")) << printed();
  as_keeper([](Keeper& keeper) { ASSERT_TRUE(keeper.set_current("ckpt.2")); });
  expect_forecast(2);
}

TEST_F(ExplainPrefix, ADamagedFileIsNamedOnceARunHasFailedOnIt) {
  flip_bit(bed_.file(4, 5));
  EXPECT_EQ(bed_.restart(four_nodes()), 2);
  bed_.lose_all_nodes();
  ASSERT_EQ(explain(), 0);
  const auto failed = said_of("ckpt.4", "prefix");
  EXPECT_TRUE(has(failed, "an earlier restart from it failed (20")) << printed();
  EXPECT_TRUE(has(failed, bed_.file(4, 5) + " does not match its checksum")) << printed();
  EXPECT_TRUE(has(failed, "cairn verify --repair ckpt.4 --prefix " + prefix())) << printed();
  EXPECT_TRUE(has(failed, "then cairn index quarantine --lift ckpt.4 --prefix " + prefix()))
      << printed();
  EXPECT_TRUE(has(failed, "cairn index delete")) << "no cache can restore it: " << printed();
  expect_forecast(2);
}

TEST_F(ExplainPrefix, AFileThatIsRemovedOrCutIsSeenBeforeARunFailsOnIt) {
  for (const int dataset : {4, 2}) {
    if (dataset == 4)
      fs::remove(bed_.file(dataset, 5));
    else
      fs::resize_file(bed_.file(dataset, 5), 10);
    const int next = dataset == 4 ? 2 : 0;
    ASSERT_EQ(explain(), 0);
    const auto bad = said_of(fmt::format("ckpt.{}", dataset), "prefix");
    EXPECT_TRUE(has(bad, bed_.file(dataset, 5))) << printed();
    EXPECT_TRUE(has(bad, "a restart would mark it as failed and take the next older")) << printed();
    expect_forecast(next);
    bed_.lose_all_nodes();
  }
}

TEST_F(ExplainPrefix, ThatAFailureStopsARunIsForetold) {
  fs::remove(bed_.file(4, 5));
  process_.environment["CAIRN_ON_FETCH_FAIL"] = "stop";
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(printed().starts_with("a restart with 8 ranks would fail: dataset 4 (ckpt.4) in " +
                                    prefix() + " cannot be used: "))
      << printed();
  EXPECT_TRUE(prints("because CAIRN_ON_FETCH_FAIL=stop")) << "as the job says it: " << printed();
}

TEST_F(ExplainPrefix, APurgeDropsWhatCairnDidNotWriteAndDeletesTheRest) {
  as_keeper([](Keeper& keeper) {
    DatasetRecord record = named(keeper, "ckpt.2");
    record.info.flags |= flag_in_place | flag_found;
    ASSERT_TRUE(keeper.update(record));
  });
  process_.environment["SCR_PREFIX_PURGE"] = "1";
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(
      prints("(ckpt.4), in the prefix directory: SCR_PREFIX_PURGE=1: the next run deletes it"))
      << printed();
  EXPECT_TRUE(
      prints("(ckpt.2), in the prefix directory: SCR_PREFIX_PURGE=1: the next run drops it; its "
             "files stay"))
      << printed();
}

TEST_F(ExplainPrefix, QuarantinedAndDroppedOnesAreReportedWithTheWayBack) {
  as_keeper([](Keeper& keeper) {
    DatasetRecord record = named(keeper, "ckpt.4");
    record.quarantined = true;
    record.attempts = 3;
    ASSERT_TRUE(keeper.update(record));
    ASSERT_TRUE(keeper.drop(named(keeper, "ckpt.2").info));
  });
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(printed().starts_with(
      "a restart with 8 ranks would START FROM SCRATCH: there is a checkpoint, but "
      "dataset 4 (ckpt.4) is not used"))
      << printed();
  EXPECT_TRUE(prints(
      "it is in quarantine, because 3 restarts from it have died\n  -> cairn index quarantine "
      "--lift ckpt.4 --prefix " +
      prefix()))
      << printed();
  EXPECT_TRUE(prints(
      "dataset 2 (ckpt.2), dropped: it was dropped by cairn index drop; no restart takes it\n  -> "
      "cairn index add ckpt.2 --prefix " +
      prefix()))
      << printed();
  expect_forecast(0);
}

TEST_F(ExplainPrefix, VerifySaysOfGoodBytesThatNoRestartUsesThem) {
  EXPECT_EQ(verify_prefix(false, {"ckpt.4"}), exit_ok);
  EXPECT_FALSE(prints("no restart")) << printed();
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
  EXPECT_TRUE(prints("good: ") && prints("an earlier restart from it failed (") &&
              prints("the disk was full"))
      << printed();
  EXPECT_TRUE(prints("cairn index quarantine --lift")) << printed();
  EXPECT_EQ(verify_prefix(false, {"ckpt.2"}), exit_ok);
  EXPECT_TRUE(prints("no restart uses it: it is in quarantine")) << printed();
  flip_bit(bed_.file(4, 5));
  EXPECT_NE(verify_prefix(false, {"ckpt.4"}), exit_ok);
  EXPECT_FALSE(prints("no restart uses it")) << "that is said of good bytes only: " << printed();
}

TEST_F(ExplainPrefix, AQuarantinedOneOfTheCacheIsReported) {
  bed_.settings.restart_attempts = 1;
  bed_.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(5); });
  bed_.run_well(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.session->have_restart());
    ASSERT_TRUE(rank.session->start_restart()) << "and the run dies here";
  });
  ASSERT_EQ(explain(), 0);
  const auto cached = said_of("ckpt.5", "cache");
  EXPECT_TRUE(has(cached, "it is in quarantine, because 1 restart from it has died")) << printed();
  EXPECT_TRUE(has(cached, "cairn index quarantine --lift ckpt.5 --prefix " + prefix()))
      << printed();
  expect_forecast(4);
}

TEST_F(ExplainPrefix, ARecordThatCannotBeReadIsReported) {
  fs::remove(prefix() + "/.cairn/listing");
  std::ofstream(record_of(4), std::ios::binary) << "no record";
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(prints("note: a dataset in the prefix directory cannot be used: " + record_of(4)))
      << printed();
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
    ASSERT_TRUE(prints(note + record_of(dataset))) << printed();
    if (dataset == 4) {
      process_.environment["CAIRN_ON_FETCH_FAIL"] = "stop";
      ASSERT_EQ(explain(8), 0);
      EXPECT_TRUE(printed().starts_with("a restart with 8 ranks would fail: ")) << printed();
      process_.environment.erase("CAIRN_ON_FETCH_FAIL");
      expect_forecast(2);
      bed_.lose_all_nodes();
    }
  }
  EXPECT_TRUE(printed().starts_with("a restart with 8 ranks would fail: there may be"))
      << printed();
  bed_.run_well(four_nodes(), [](JobRank& rank) { EXPECT_FALSE(rank.session->have_restart()); });
}

/// The cache and the prefix directory have it.
TEST_F(ExplainPrefix, WhatIsInBothIsTakenFromTheCache) {
  EXPECT_EQ(bed_.restart(four_nodes()), 4);
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(prints("would take dataset 4 (ckpt.4) from the cache")) << printed();
  EXPECT_TRUE(has(said_of("ckpt.4", "prefix"), "; a restart takes it from the cache")) << printed();
  expect_forecast(4);
}

TEST_F(ExplainPrefix, WhatIsOnlyInTheCacheIsCopiedFirstWhereRestartsAreGlobal) {
  bed_.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(5); });
  process_.environment["SCR_GLOBAL_RESTART"] = "1";
  ASSERT_EQ(explain(), 0);
  const std::string first = line_with("would take dataset 5 (ckpt.5) from the prefix directory");
  EXPECT_NE(first.find("it is copied from the caches"), std::string::npos) << first;
  EXPECT_TRUE(said_of("ckpt.5", "cache").at("taken"));
}

/// What is asked for comes first, whatever has become of it.
TEST_F(ExplainPrefix, TheOneThatTheUserNamesIsTaken) {
  process_.environment["SCR_CURRENT"] = "ckpt.2";
  bed_.settings.current = "ckpt.2";
  expect_forecast(2);
  process_.environment["SCR_CURRENT"] = "ckpt.9";
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(prints("note: SCR_CURRENT=ckpt.9: there is no such checkpoint in " + prefix()))
      << printed();
}

TEST_F(ExplainPrefix, WhatWasScavengedIsForRebuild) {
  bed_.settings.job_id = "other";  // its caches are not seen under its own name
  bed_.run_well(four_nodes(), [](JobRank& rank) { rank.expect_written(5); });
  for (const std::string node : {"n0", "n2", "n3"}) {
    fs::create_directories(prefix() + "/.cairn/scavenged");
    fs::copy(bed_.job_folder(node), prefix() + "/.cairn/scavenged/" + node,
             fs::copy_options::recursive);
  }
  ASSERT_EQ(explain(), 0);
  const auto scavenged = said_of("ckpt.5", "scavenged");
  EXPECT_TRUE(has(scavenged, "it was scavenged, and can be made whole")) << printed();
  EXPECT_TRUE(has(scavenged, "cairn rebuild --prefix " + prefix())) << printed();
  EXPECT_TRUE(prints("would take dataset 4 (ckpt.4)")) << "until that is done" << printed();
  EXPECT_TRUE(prints("note: job other of tester on n0 (process ")) << printed();
  EXPECT_TRUE(prints("another job ")) << printed();
  fs::remove_all(prefix() + "/.cairn/scavenged/n0");
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.5", "scavenged"),
                  "cannot be made whole: data of rank 2 (written on n1), rank 0 (written on n0)"))
      << printed();
}

TEST_F(ExplainPrefix, ScrsCommandRebuildsTheScavengedDatasetOfANumber) {
  bed_.settings.job_id = "other";
  bed_.run_well(four_nodes(), [](JobRank& rank) { rank.expect_written(5); });
  for (const std::string node : {"n0", "n2", "n3"}) {
    fs::create_directories(prefix() + "/.cairn/scavenged");
    fs::copy(bed_.job_folder(node), prefix() + "/.cairn/scavenged/" + node,
             fs::copy_options::recursive);
  }
  IndexCommand command;
  command.action = IndexCommand::Action::build;
  command.number = 5;
  command.force = true;
  EXPECT_EQ(keep_output_of([&](std::ostream& out, const Log& log) {
              return run_index_command(command, *files_, *clock_, process_, out, log);
            }),
            0)
      << logged();
  EXPECT_EQ(bed_.listed().front(), "ckpt.5") << printed();
}

/// A rebuild leaves it alone, so that is not what to do.
TEST_F(ExplainPrefix, WhatWasScavengedAndIsNotWantedIsNotForRebuild) {
  ASSERT_EQ(bed_.restart(four_nodes()), 4);  // its caches have it
  const auto change = [&](IndexCommand::Action action) {
    IndexCommand command;
    command.action = action;
    command.name = "ckpt.4";
    command.force = true;  // its owner is dead
    std::ostringstream out;
    ASSERT_EQ(run_index_command(command, *files_, *clock_, process_, out, Log()), 0);
    for (const std::string node : {"n0", "n1", "n2", "n3"}) {
      fs::create_directories(prefix() + "/.cairn/scavenged");
      fs::copy(bed_.job_folder(node), prefix() + "/.cairn/scavenged/" + node,
               fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    }
    ASSERT_EQ(explain(), 0);
  };
  change(IndexCommand::Action::drop);
  for (const std::string word : {"dropped", "deleted"}) {
    const auto scavenged = said_of("ckpt.4", "scavenged");
    EXPECT_TRUE(has(scavenged, "later was " + word)) << printed();
    EXPECT_FALSE(has(scavenged, "cairn rebuild --prefix")) << printed();
    EXPECT_TRUE(has(scavenged, "cairn index delete ")) << printed();
    EXPECT_EQ(has(scavenged, "cairn index add ckpt.4 "), word == "dropped") << printed();
    if (word == "dropped") change(IndexCommand::Action::remove);
  }
}

// --- caches that runs do not use ---

/// A checkpoint that is in the caches only.
class ExplainLeftCaches : public DeadJob {
 protected:
  ExplainLeftCaches() {
    bed_.settings.flush_interval = 0;
    bed_.write(four_nodes(), {1});
  }
  void expect_named_and_given_back() {
    ASSERT_EQ(explain(), 0) << logged();
    EXPECT_TRUE(printed().starts_with("a restart would START FROM SCRATCH, although")) << printed();
    EXPECT_TRUE(has(json_.at("notes"), "cairn index id ")) << printed();
    EXPECT_EQ(json_.at("caches").size(), 0U) << printed();
    verify_prefix();
    EXPECT_TRUE(logs("cairn index id ")) << logged();
    EXPECT_EQ(follow_index_id(logged()), 0) << logged();
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
  const std::string copy = bed_.node("copy");
  fs::copy(prefix(), copy, fs::copy_options::recursive);
  fs::remove_all(prefix());
  process_.environment["SCR_PREFIX"] = bed_.settings.prefix = copy;
  expect_named_and_given_back();
}

TEST_F(ExplainLeftCaches, GivenToACopyAreGivenWithAWarningIfTheOriginalIsThere) {
  const std::string original = prefix();
  const std::string copy = bed_.node("copy");
  fs::copy(original, copy, fs::copy_options::recursive);
  process_.environment["SCR_PREFIX"] = bed_.settings.prefix = copy;
  verify_prefix();
  EXPECT_EQ(follow_index_id(logged()), 0) << logged();
  EXPECT_TRUE(logs(original + " has the id")) << logged();
  expect_forecast(1);
}

TEST_F(ExplainLeftCaches, AreNotThoseOfTheDirectoryItself) {
  ASSERT_EQ(explain(), 0) << logged();
  EXPECT_FALSE(prints("cairn index id")) << printed();
  expect_forecast(1);
}

// --- both, and neither ---

TEST_F(Explain, AnUnfinishedFlushIsEndedWhereItsPartsAreStillThere) {
  bed_.lose_node_that_has_flushed();
  ASSERT_EQ(explain(), 0);
  const auto flush = said_of("ckpt.4", "unfinished flush");
  EXPECT_TRUE(has(flush, "the next run finishes it")) << printed();
  EXPECT_TRUE(flush.at("taken")) << printed();
  expect_forecast(4);
}

/// Of an older one that cannot be read files may still have to be given their names.
TEST_F(Explain, AnUnfinishedFlushWaitsForARecordThatMayBeGood) {
  bed_.lose_node_that_has_flushed();
  fs::remove(prefix() + "/.cairn/listing");
  const Blob newer = seal(RecordType::dataset, dataset_record_version + 1, {});
  for (const auto& dataset : fs::directory_iterator(prefix() + "/.cairn/datasets")) {
    std::ofstream(dataset.path() / "dataset", std::ios::binary)
        << std::string(reinterpret_cast<const char*>(newer.data()), newer.size());
    fs::create_directory(DatasetFolder::markers(dataset.path()));
  }
  process_.environment["SCR_CURRENT"] = bed_.settings.current = "ckpt.2";
  ASSERT_EQ(explain(8), 0);
  EXPECT_TRUE(has(said_of("ckpt.4", "unfinished flush"), "no run can finish it now")) << printed();
  EXPECT_TRUE(prints("SCR_CURRENT=ckpt.2: it is unknown whether there is a")) << printed();
  EXPECT_TRUE(printed().starts_with("a restart with 8 ranks would fail: there may be"))
      << printed();
  bed_.run_well(four_nodes(), [](JobRank& rank) { EXPECT_FALSE(rank.session->have_restart()); });
}

TEST_F(Explain, AnUnfinishedFlushWhosePartsAreLostIsGivenUp) {
  bed_.lose_node_that_has_flushed();
  bed_.lose("n0");
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(has(said_of("ckpt.4", "unfinished flush"), "do not have the rest")) << printed();
  expect_forecast(2);
}

TEST_F(Explain, NoDatasetAtAllAndNoPrefixDirectory) {
  ASSERT_EQ(explain(), 0);
  EXPECT_TRUE(printed().starts_with("a restart would start from scratch: there is no dataset\n"))
      << printed();
  fs::remove_all(prefix());
  EXPECT_EQ(explain(), 1);
  EXPECT_TRUE(logs(prefix())) << logged();
}

TEST_F(Explain, ADirectoryInWhichNoJobHasWorkedIsNoAnswer) {
  process_.environment.erase("SCR_JOB_ID");
  EXPECT_EQ(explain(), 1);
  EXPECT_TRUE(logs("no job has worked in " + prefix())) << logged();
  fs::create_directory(prefix() + "/step.1");
  EXPECT_EQ(explain(0, {"step.1"}), 1);
  EXPECT_TRUE(logs("--prefix step.1")) << logged();
  EXPECT_EQ(explain(0, {}, {prefix()}), 0) << "--cache asks about that directory";
  process_.environment["SCR_JOB_ID"] = "job";
  EXPECT_EQ(explain(), 0) << "a job that has not begun";
  process_.environment.erase("SCR_JOB_ID");
  fs::create_directory(prefix() + "/.cairn");
  EXPECT_EQ(explain(), 0);
}

TEST_F(Explain, AWordThatIsADirectoryIsReportedWithItsOption) {
  bed_.write(four_nodes(), {1});
  EXPECT_EQ(explain(0, {bed_.node("n1")}), 1);
  EXPECT_TRUE(logs("--prefix " + bed_.node("n1"))) << logged();
  EXPECT_EQ(verify_prefix(false, {bed_.node("n1")}), 1);
  EXPECT_TRUE(logs("--prefix " + bed_.node("n1"))) << logged();
  EXPECT_EQ(explain(0, {"ckpt.9"}), 1);
  EXPECT_FALSE(logs("--prefix")) << logged();
}

/// Unless the run has left its newest checkpoint in the caches, or died.
TEST_F(Explain, AfterTheEndOfTheJobNothingIsToBeSaved) {
  bed_.settings.flush_interval = 1;
  const auto note = [this] {
    EXPECT_EQ(explain(), 0) << logged();
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
  bed_.write(four_nodes(), {1});
  bed_.lose_all_nodes();
  keep(0);
  EXPECT_NE(note().find("scavenge"), std::string::npos) << printed();
  keep(2);
  EXPECT_EQ(note().find("scavenge"), std::string::npos) << printed();
  process_.environment["SCR_FLUSH"] = "0";
  EXPECT_NE(note().find("scavenge"), std::string::npos) << printed();
}

/// As of a run on simulated nodes, whose storage is deleted with them.
TEST_F(Explain, WhatTheNodesOfOneMachineHaveLostCannotBeSaved) {
  const auto was_on = [this](const std::string& host, std::string store = {}) {
    LastRunRecord run;
    run.job_id = "job";
    run.user = "tester";
    run.prefix = prefix();
    run.host = "login";
    run.stores = {{store.empty() ? bed_.node("%n") : std::move(store), false}};
    for (const char* name : {"n0", "n1", "n2", "n3"}) run.nodes.push_back({name, host, 2});
    run.started_us = 1;
    ASSERT_TRUE(keep_last_run(*files_, *clock_, PrefixFolder{prefix()}, run));
  };
  const auto advises_the_nodes = [this] {
    EXPECT_EQ(explain(), 0) << logged();
    return prints("cairn scavenge") || prints("start again with the nodes");
  };
  bed_.write(four_nodes(), {1, 2, 3});
  bed_.lose("n1");
  bed_.lose("n2");
  was_on("other");
  EXPECT_TRUE(advises_the_nodes()) << printed();
  was_on("login");
  EXPECT_FALSE(advises_the_nodes()) << printed();
  EXPECT_TRUE(prints("n1, n2 are lost")) << printed();
  EXPECT_FALSE(said_of("ckpt.3", "cache").at("usable"));
  ASSERT_EQ(explain(0, {}, {bed_.node("n0")}), 0);
  EXPECT_TRUE(prints("cairn scavenge")) << "not all caches were looked at\n" << printed();
  was_on("login", "/ssd/%n");
  EXPECT_TRUE(advises_the_nodes()) << "SCR_CACHE_BASE names another store\n" << printed();
  was_on("login");
  bed_.lose_all_nodes();
  EXPECT_FALSE(advises_the_nodes()) << printed();
  was_on("other");
  EXPECT_TRUE(advises_the_nodes()) << printed();
}

TEST_F(Explain, OneDatasetIsFoundByNameNumberAndUuid) {
  bed_.write(four_nodes(), {1, 2, 3});
  ASSERT_EQ(explain(), 0);
  const std::string uuid = said_of("ckpt.2", "prefix").at("uuid");
  for (const std::string& name : {std::string("ckpt.2"), std::string("2"), uuid}) {
    ASSERT_EQ(explain(0, {name}), 0) << name;
    EXPECT_EQ(json_.at("datasets").size(), 1U) << name;
    EXPECT_EQ(json_.at("datasets")[0].at("number"), 2);
    EXPECT_TRUE(printed().starts_with("a restart with 8 ranks would take dataset 3")) << printed();
  }
  EXPECT_EQ(explain(0, {"ckpt.9"}), 1);
  EXPECT_TRUE(logs("no such dataset: ckpt.9")) << logged();
}

}  // namespace
}  // namespace cairn
