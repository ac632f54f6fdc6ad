// Datasets that are copied to the prefix directory again, late, or not any more.

#include <chrono>
#include <thread>

#include "support/job_bed.hpp"

namespace cairn {
namespace {

namespace fs = std::filesystem;

class AgainBed : public PrefixJobBed {
 public:
  /// The caches are as they were; only the prefix directory remembers what happened.
  template <class Action>
  void with_lost_caches(Action action) {
    for (const std::string name : {"n0", "n1", "n2", "n3"}) {
      save("saved." + name, name);
      lose(name);
    }
    action();
    for (const std::string name : {"n0", "n1", "n2", "n3"}) bring_back("saved." + name, name);
  }

  /// What `cairn index` does, between two runs.
  void by_command(const std::function<Status(Keeper&, const DatasetRecord&)>& change) {
    const auto files = make_posix_files();
    OwnerRecord me;
    me.job_id = "of cairn index";
    auto keeper = Keeper::take_over(*files, *clock, {settings.prefix}, me, Claim::forced);
    ASSERT_TRUE(keeper) << keeper.error().text;
    const DatasetRecord newest = keeper->known().listing.at(0);
    EXPECT_TRUE(change(*keeper, newest));
    EXPECT_TRUE(keeper->save_listing());
    EXPECT_TRUE(keeper->resign());
  }

  static Status drop(Keeper& keeper, const DatasetRecord& record) {
    return keeper.drop(record.info);
  }

  DatasetRecord newest() const {
    std::vector<std::string> damaged;
    return read_listing(*make_posix_files(), {settings.prefix}, damaged)->at(0);
  }

  /// A run that restarts from the cache and ends well.
  void restart_and_finalize(int from) {
    EXPECT_EQ(restart(four_nodes(), [](JobRank& rank) { EXPECT_TRUE(rank.session->finalize()); }),
              from);
  }

  /// A run that dies while the program reads the checkpoint.
  void die_in_restart(const std::string& name) {
    run_well(four_nodes(), [&](JobRank& rank) {
      EXPECT_EQ(rank.session->have_restart().value(), name);
      EXPECT_TRUE(rank.session->start_restart());
    });
  }
};

// --- deleted by a command ---

class DeletedBed : public AgainBed {
 public:
  /// Checkpoints 1 and 2 are there and in the caches.
  DeletedBed() {
    settings.flush_interval = 1;
    settings.stores[0].count = 2;
    write_and_finalize({1, 2});
  }

  static Status note(Keeper& keeper, const DatasetRecord& record) {
    return keeper.set_deleted({record});
  }
  static Status remove(Keeper& keeper, const DatasetRecord& record) {
    CAIRN_TRY(note(keeper, record));
    return keeper.take_out(record.info);
  }

  void expect_only_1_is_left() {
    EXPECT_EQ(restart(four_nodes()), 1);
    EXPECT_EQ(listed(), Names{"ckpt.1"});
    for (const std::string& name : four_nodes()) EXPECT_TRUE(parts(name, 2).empty()) << name;
    EXPECT_TRUE(read_deleted(*make_posix_files(), {settings.prefix})->empty());
  }
};

TEST(SessionDeleted, WhatACommandHasDeletedDoesNotComeBackFromTheCaches) {
  DeletedBed bed;
  bed.by_command(DeletedBed::remove);
  EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { EXPECT_TRUE(rank.session->finalize()); }),
            1);
  EXPECT_TRUE(bed.logs("dataset 2 was deleted from")) << bed.log_text();
  bed.expect_only_1_is_left();
}

/// Does what is posted only when its owner waits; one of them takes its time.
class WhenWaitedFor final : public Background {
 public:
  explicit WhenWaitedFor(bool is_slow) : is_slow_(is_slow) {}
  ~WhenWaitedFor() override { wait(); }
  void post(std::uint64_t, std::function<void()> task) override {
    tasks_.push_back(std::move(task));
  }
  void wait() override {
    if (is_slow_ && !tasks_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (const auto& task : std::exchange(tasks_, {})) task();
  }
  std::unique_ptr<Repeated> repeat(std::int64_t, std::function<void()>) override { return {}; }
  void in_parallel(int, const std::function<void()>& work) override { work(); }

 private:
  const bool is_slow_;
  std::vector<std::function<void()>> tasks_;
};

/// A power failure may come at any time, and may leave what was being removed.
TEST(SessionDeleted, ItIsForgottenWhenItsRemovalFromAllCachesIsOver) {
  DeletedBed bed;
  bed.by_command(DeletedBed::remove);
  const std::string list = PrefixFolder{bed.settings.prefix}.deleted_list();
  std::vector<std::string> left;
  int times_forgotten = 0;
  EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
    rank.background = std::make_unique<WhenWaitedFor>(rank.number() == 7);
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (operation.name != "rename" || operation.to != list) return {};
      ++times_forgotten;
      for (const std::string name : {"n0", "n1", "n2", "n3"})
        for (const std::string& part : bed.parts(name, 2)) left.push_back(part);
      return {};
    };
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 1);
  }));
  EXPECT_EQ(times_forgotten, 1);
  EXPECT_EQ(left, std::vector<std::string>());
}

TEST(SessionDeleted, OneThatIsStillThereWasNotDeleted) {
  DeletedBed bed;
  bed.by_command(DeletedBed::note);
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  EXPECT_EQ(bed.listed(), (Names{"ckpt.2", "ckpt.1"}));
  EXPECT_TRUE(read_deleted(*make_posix_files(), {bed.settings.prefix})->empty());
}

TEST(SessionDeleted, AnotherJobLeavesItToTheOneWhoseCachesHaveIt) {
  DeletedBed bed;
  bed.by_command(DeletedBed::remove);
  bed.settings.job_id = "other";
  EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { EXPECT_TRUE(rank.session->finalize()); }),
            1);
  bed.settings.job_id = "job";
  bed.expect_only_1_is_left();
}

TEST(SessionDeleted, ACrashWhileItIsRemovedBringsNothingBack) {
  constexpr int stride = sanitized ? 17 : 4;
  for (const int victim : {0, 5}) {
    bool crashed = true;
    for (int step = 0; crashed; step += stride) {
      DeletedBed bed;
      bed.by_command(DeletedBed::remove);
      crashed = !bed.run(four_nodes(), [&](JobRank& rank) {
        if (rank.number() == victim) rank.hook = crash_after(step);
        const Status ready = rank.init();
        rank.hook = {};
        EXPECT_TRUE(ready) << ready.error().text;
      });
      bed.expect_only_1_is_left();
      ASSERT_FALSE(testing::Test::HasFailure()) << "rank " << victim << " after " << step;
    }
  }
}

// --- again ---

TEST(SessionAgain, OneThatIsDamagedThereIsCopiedAgainFromTheCache) {
  AgainBed bed;
  bed.write_and_finalize({1, 2});
  flip_bit(bed.file(2, 5));
  bed.with_lost_caches([&] { EXPECT_EQ(bed.restart(four_nodes()), 0); });
  EXPECT_NE(bed.newest().failed_us, 0);
  bed.restart_and_finalize(2);
  EXPECT_EQ(bed.listed(), Names({"ckpt.2"}));
  EXPECT_EQ(bed.newest().failed_us, 0);
  bed.expect_own_files(2);
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

/// An output must be there, whatever becomes of restarts.
TEST(SessionAgain, OneThatIsDamagedThereIsCopiedAgainThoughItIsInQuarantine) {
  AgainBed bed;
  bed.write_and_finalize({2}, flag_checkpoint | flag_output);
  flip_bit(bed.file(2, 5));
  bed.with_lost_caches([&] { EXPECT_EQ(bed.restart(four_nodes()), 0); });
  bed.by_command([](Keeper& keeper, DatasetRecord record) {
    record.attempts = 3;
    record.quarantined = true;
    return keeper.set_attempts({record});
  });
  bed.restart_and_finalize(0);
  EXPECT_EQ(bed.newest().failed_us, 0);
  EXPECT_TRUE(bed.newest().quarantined);
  bed.expect_own_files(2);
}

TEST(SessionAgain, ACrashWhileOneIsCopiedAgainLosesNothing) {
  constexpr int stride = sanitized ? 13 : 3;
  bool crashed = true;
  for (int step = 0; crashed; step += stride) {
    AgainBed bed;
    bed.write_and_finalize({1, 2});
    flip_bit(bed.file(2, 5));
    bed.with_lost_caches([&] { EXPECT_EQ(bed.restart(four_nodes()), 0); });
    crashed = !bed.run(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.init());
      if (rank.number() == 0) rank.hook = crash_after(step, bed.settings.prefix);
      (void)rank.session->finalize();
      rank.hook = nullptr;
    });
    bed.restart_and_finalize(2);
    ASSERT_EQ(bed.listed(), Names({"ckpt.2"})) << step;
    bed.lose_all_nodes();
    ASSERT_EQ(bed.restart(four_nodes()), 2) << step;
    bed.expect_own_files(2);
    ASSERT_FALSE(::testing::Test::HasFailure()) << step;
  }
}

// --- not any more ---

/// No file gets its own name.
Status cannot_name(const FileOperation& operation) {
  const bool names =
      operation.name == "rename" && operation.path.find("/.cairn.") != std::string_view::npos;
  return names ? fail(Code::io, "injected: cannot rename {}", operation.path) : Status{};
}

/// No file goes that has its own name.
Status cannot_remove(const FileOperation& operation) {
  const bool removes = operation.name == "remove_file" &&
                       operation.path.find("/pfs/ckpt.") != std::string_view::npos &&
                       operation.path.find("/.cairn.") == std::string_view::npos;
  return removes ? fail(Code::io, "injected: cannot remove {}", operation.path) : Status{};
}

/// Else only Cairn could find them.
TEST(SessionAgain, FilesOfWhatIsDroppedGetTheirOwnNamesFirst) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 1;
  EXPECT_TRUE(bed.run(four_nodes(), [](JobRank& rank) {
    ASSERT_TRUE(rank.init());
    rank.hook = cannot_name;
    rank.expect_written(1);
    rank.hook = nullptr;
    EXPECT_TRUE(rank.session->datasets().drop("ckpt.1"));
  })) << bed.log_text();
  bed.expect_own_files(1);
  EXPECT_EQ(bed.listed(), Names());
}

/// The name of its folder says so, also where its record cannot be read or is damaged.
TEST(SessionAgain, OneThatWasDroppedStaysDroppedWhateverBecomesOfItsRecord) {
  const FileHook cannot_read = [](const FileOperation& operation) -> Status {
    const bool dropped = operation.path.find("/dropped/dataset.") != std::string_view::npos;
    return dropped ? fail(Code::io, "injected: {}", operation.path) : Status{};
  };
  for (const bool is_damaged : {false, true})
    for (const FileHook& hook : {FileHook(), cannot_read}) {
      AgainBed bed;
      bed.write_and_finalize({1, 2});
      bed.by_command(AgainBed::drop);
      for (const auto& entry : fs::directory_iterator(PrefixFolder{bed.settings.prefix}.dropped()))
        if (is_damaged) flip_bit(entry.path() / "dataset");
      bed.settings.flush_on_restart = true;
      EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
        rank.hook = hook;
        ASSERT_TRUE(rank.init());
        EXPECT_EQ(rank.restart(), 2);
        EXPECT_TRUE(rank.session->finalize());
      }));
      EXPECT_EQ(bed.listed(), Names());
      bed.expect_own_files(2);
    }
}

/// Nothing is copied before it is known.
TEST(SessionAgain, OneThatWasDroppedStaysDroppedThoughTheListOfDroppedCannotBeRead) {
  AgainBed bed;
  bed.settings.flush_interval = 1;
  bed.write_and_finalize({1});
  bed.by_command(AgainBed::drop);
  bed.settings.flush_on_restart = true;
  std::atomic<bool> passed = false;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_TRUE(rank.session->finalize());
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (passed || operation.name != "list" || !operation.path.ends_with("/dropped")) return {};
      return fail(Code::io, "injected: {}", operation.path);
    };
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 1);
    rank.expect_not_copied(2);
    rank.comm.barrier();
    passed = true;
    rank.comm.barrier();
    rank.expect_written(3);
    EXPECT_TRUE(rank.session->finalize());
    rank.hook = nullptr;
  });
  EXPECT_TRUE(bed.logs("dropped datasets")) << bed.log_text();
  EXPECT_EQ(bed.listed(), Names({"ckpt.3"}));
}

/// Also where it had been copied, was not yet, or in part only.
TEST(SessionAgain, WhatTheProgramHasDeletedIsNotCopiedWhenTheRunEnds) {
  const std::vector<std::pair<std::string, FileHook>> ways = {
      {"copied", nullptr},
      {"not copied",
       [](const FileOperation& operation) -> Status {
         const bool is_there = operation.path.find("/pfs/") != std::string_view::npos;
         return is_there ? fail(Code::io, "injected: {} is away", operation.path) : Status{};
       }},
      {"copied, but not published", [](const FileOperation& operation) -> Status {
         const bool publishes = operation.name == "rename" &&
                                operation.to.find("/datasets/dataset.2") != std::string_view::npos;
         return publishes ? fail(Code::io, "injected: cannot rename {}", operation.path) : Status{};
       }}};
  for (const auto& [name, hook] : ways) {
    PrefixJobBed bed;
    bed.settings.flush_interval = 1;
    bed.settings.stores[0].count = 2;
    bed.settings.log_json = true;
    EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
      ASSERT_TRUE(rank.init());
      rank.expect_written(1);
      rank.hook = hook;
      EXPECT_EQ(rank.write(2, flag_checkpoint | flag_output).has_value(), hook == nullptr);
      rank.hook = nullptr;
      EXPECT_TRUE(rank.session->datasets().remove("ckpt.2"));
      EXPECT_TRUE(rank.session->finalize());
    })) << name;
    EXPECT_EQ(bed.logged_events("DELETE"), 1) << "cairn run must not take it for left: " << name;
    EXPECT_EQ(bed.listed(), Names{"ckpt.1"}) << name;
    EXPECT_EQ(bed.restart(four_nodes()), 1) << name;
    EXPECT_EQ(bed.listed(), Names{"ckpt.1"}) << name << bed.log_text();
    for (int rank = 0; rank < 8; ++rank) EXPECT_FALSE(fs::exists(bed.file(2, rank))) << name;
  }
}

TEST(SessionAgain, AllOfANameAreDeleted) {
  AgainBed bed;
  bed.settings.flush_interval = 1;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    for (int i = 0; i < 3; ++i) rank.expect_written(1);
    rank.expect_written(2);
    EXPECT_TRUE(rank.session->datasets().remove("ckpt.1"));
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.2"}));
  EXPECT_FALSE(fs::exists(bed.settings.prefix + "/ckpt.1"));
}

// --- attempts ---

TEST(SessionAgain, RestartsFromTheCacheAloneAreCountedToo) {
  AgainBed bed;
  bed.settings.stores[0].count = 2;
  bed.settings.flush_interval = 0;
  bed.write(four_nodes(), {1, 2});
  for (int attempt = 0; attempt < 2; ++attempt) bed.die_in_restart("ckpt.2");
  EXPECT_FALSE(bed.logs("CAIRN_RESTART_ATTEMPTS")) << bed.log_text();
  bed.lose("n0");
  bed.die_in_restart("ckpt.2");
  EXPECT_TRUE(bed.logs("CAIRN_RESTART_ATTEMPTS")) << bed.log_text();
  EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(3); }), 1);
  EXPECT_TRUE(bed.logs("3 restarts from it have died")) << bed.log_text();
  EXPECT_EQ(bed.restart(four_nodes()), 3);
}

TEST(SessionAgain, ARestartThatGoesWellIsNotCounted) {
  AgainBed bed;
  bed.settings.flush_interval = 0;
  bed.write(four_nodes(), {1});
  for (int attempt = 0; attempt < 2; ++attempt) bed.die_in_restart("ckpt.1");
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  for (int attempt = 0; attempt < 2; ++attempt) bed.die_in_restart("ckpt.1");
  EXPECT_EQ(bed.restart(four_nodes()), 1);
}

/// `cairn index current` is given while no job runs.
TEST(SessionAgain, ThatTheCachesGoBeforeTheCurrentOneIsReported) {
  AgainBed bed;
  bed.settings.flush_interval = 1;
  bed.write_and_finalize({1, 2});
  const char* reported = "(ckpt.1), the current dataset of";
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  EXPECT_FALSE(bed.logs("the current dataset of")) << "no other one was named";
  bed.by_command([](Keeper& keeper, const DatasetRecord&) { return keeper.set_current("ckpt.1"); });
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  EXPECT_TRUE(bed.logs(reported) && bed.logs("SCR_CACHE_PURGE=1")) << bed.log_text();
  bed.lose_all_nodes();
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  EXPECT_FALSE(bed.logs("the current dataset of")) << "it is what is taken";
}

TEST(SessionAgain, ThatAnOlderOneOfTheCachesIsTakenIsReported) {
  AgainBed bed;
  bed.settings.flush_interval = 1;
  bed.write_and_finalize({1});
  bed.with_lost_caches([&] { bed.write_and_finalize({2}); });
  bed.settings.fetch = false;
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  EXPECT_TRUE(bed.logs("(ckpt.2), the current dataset of") && bed.logs("SCR_FETCH=0"))
      << bed.log_text();
}

TEST(SessionAgain, ThatTheCachesGoBeforeTheOneNamedIsReported) {
  AgainBed bed;
  bed.settings.flush_interval = 1;
  bed.write_and_finalize({1, 2});
  bed.settings.current = "ckpt.1";
  EXPECT_EQ(bed.restart(four_nodes()), 2);
  EXPECT_TRUE(bed.logs("SCR_CURRENT=ckpt.1 is ignored")) << bed.log_text();
  bed.settings.cache_purge = true;
  EXPECT_EQ(bed.restart(four_nodes()), 1);
  EXPECT_FALSE(bed.logs("is ignored")) << bed.log_text();
}

// --- late ---

/// Writes one file of one name from every rank.
Status write_same(JobRank& rank, const std::string& name) {
  CAIRN_TRY(rank.session->start_output(name, flag_output));
  const auto path =
      rank.session->route_file(fmt::format("{}/out/{}", rank.settings.prefix, rank.number()));
  std::ofstream(*path) << name;
  return rank.session->complete_output(true);
}

TEST(SessionAgain, AnOutputThatComesLateTakesNoNameOfANewerOne) {
  AgainBed bed;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    std::string first;
    rank.hook = [&first](const FileOperation& operation) -> Status {
      const auto at = operation.path.find("/.cairn.");
      if (operation.name != "create" || at == std::string_view::npos) return {};
      const std::string uuid(operation.path.substr(at, 40));
      if (first.empty()) first = uuid;
      return uuid == first ? fail(Code::no_space, "injected: {}", operation.path) : Status{};
    };
    EXPECT_FALSE(write_same(rank, "older"));
    EXPECT_TRUE(write_same(rank, "newer"));
    rank.comm.barrier();
    rank.hook = nullptr;
    rank.expect_not_all_copied();
  });
  for (int rank = 0; rank < 8; ++rank)
    EXPECT_EQ(read_all(fmt::format("{}/out/{}", bed.settings.prefix, rank)), "newer");
}

// --- trouble at the wrong time ---

TEST(SessionAgain, ARunThatEndsGivesTheDirectoryBackWithoutAListing) {
  AgainBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      if (!operation.path.ends_with("/new.listing")) return {};
      return fail(Code::no_space, "injected: {}", operation.path);
    };
    rank.expect_written(1, flag_output);
    EXPECT_TRUE(rank.session->finalize());
    rank.hook = nullptr;
  });
  const auto owner = *read_owner(*make_posix_files(), {bed.settings.prefix});
  EXPECT_EQ(owner->beat_us, 0) << "no other job needs to wait";
}

TEST(SessionAgain, WhatCannotBeDeletedKeepsNothingElseFromItsNames) {
  AgainBed bed;
  bed.settings.flush_interval = 1;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    rank.hook = cannot_remove;
    EXPECT_FALSE(rank.session->datasets().remove("ckpt.1"));
    rank.hook = cannot_name;
    rank.expect_written(2);
    rank.hook = nullptr;
  });
  EXPECT_TRUE(bed.run(four_nodes(), [](JobRank& rank) {
    rank.hook = cannot_remove;
    ASSERT_TRUE(rank.init());
    rank.expect_written(3);
  }));
  EXPECT_TRUE(bed.logs("could not be finished")) << bed.log_text();
  EXPECT_EQ(bed.listed(), Names({"ckpt.3", "ckpt.2"}));
  bed.expect_own_files(2);
  EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
    rank.hook = cannot_remove;
    ASSERT_TRUE(rank.init());
    rank.hook = cannot_name;
    rank.expect_written(4);
    rank.hook = cannot_remove;
    rank.expect_written(5);
  }));
  EXPECT_EQ(bed.listed(), Names({"ckpt.5", "ckpt.4", "ckpt.3", "ckpt.2"}));
  bed.expect_own_files(4);
  EXPECT_TRUE(fs::exists(bed.file(1, 0)));
  bed.run_well(four_nodes(), [](JobRank&) {});
  EXPECT_FALSE(bed.logs("stays")) << bed.log_text();
  EXPECT_FALSE(fs::exists(bed.file(1, 0)));
}

/// The next run cannot write there at first; the one after it can.
TEST(SessionAgain, AFlushThatDiedWaitsUntilTheDirectoryCanBeWritten) {
  AgainBed bed;
  bed.lose_node_that_has_flushed();
  EXPECT_TRUE(bed.run(four_nodes(), [](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      const bool staged = operation.path.find("/.cairn.") != std::string_view::npos;
      if (operation.name != "create" || !staged) return {};
      return fail(Code::no_space, "injected: {}", operation.path);
    };
    EXPECT_TRUE(rank.init());
    rank.hook = nullptr;
  }));
  EXPECT_EQ(bed.restart(four_nodes()), 4) << bed.log_text();
  bed.expect_own_files(4);
}

TEST(SessionAgain, AFlushThatIsEndedIsLoggedThoughSomethingElseStays) {
  AgainBed bed;
  bed.lose_node_that_has_flushed();
  const auto files = make_posix_files();
  const PrefixFolder folder{bed.settings.prefix};
  auto keeper = Keeper::take_over(*files, *bed.clock, folder, **read_owner(*files, folder));
  ASSERT_TRUE(keeper);
  ASSERT_EQ(keeper->known().listing.at(0).info.name, "ckpt.2");
  ASSERT_TRUE(keeper->take_out(keeper->known().listing.at(0).info));
  ASSERT_TRUE(keeper->resign());
  EXPECT_TRUE(bed.run(four_nodes(), [](JobRank& rank) {
    rank.hook = cannot_remove;
    ASSERT_TRUE(rank.init());
  }));
  EXPECT_TRUE(bed.logs("could not be finished")) << bed.log_text();
  EXPECT_TRUE(fs::exists(bed.file(2, 0)));
  EXPECT_TRUE(bed.logs("the flush that an earlier run began")) << bed.log_text();
  bed.expect_own_files(4);
}

TEST(SessionAgain, AQuotaThatIsExceededAtTheSyncIsReportedAndTriedAgain) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 1;
  const std::string prefix = bed.settings.prefix;
  std::atomic<int> synced = 0;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    if (rank.number() == 5) {
      rank.hook = [&](const FileOperation& operation) -> Status {
        // Of the files: each alone, or all at once by their file system.
        const bool syncs = operation.name.starts_with("sync") && operation.name != "sync_folder";
        if (!syncs || !operation.path.starts_with(prefix)) return {};
        ++synced;
        return tl::unexpected(errno_error(EDQUOT, "sync", operation.path));
      };
    }
    const Status refused = rank.write(2);
    rank.hook = nullptr;
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::not_copied);
    const std::string& text = refused.error().text;
    EXPECT_NE(text.find("rank 5 on n2"), std::string::npos) << text;
    EXPECT_NE(text.find("Disk quota exceeded"), std::string::npos) << text;
    EXPECT_NE(text.find("larger quota"), std::string::npos) << text;
    EXPECT_EQ(text.find("SCR_CACHE_BASE"), std::string::npos) << text;
  });
  EXPECT_GT(synced, 0);
  EXPECT_EQ(bed.listed(), Names({"ckpt.1"}));
  EXPECT_EQ(bed.restart(four_nodes(), [](JobRank& rank) { rank.expect_written(3); }), 2);
  EXPECT_EQ(bed.listed(), Names({"ckpt.3", "ckpt.2", "ckpt.1"}));
  bed.expect_own_files(3);
}

}  // namespace
}  // namespace cairn
