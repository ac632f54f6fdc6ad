// Several jobs on one prefix directory.
#include <chrono>
#include <optional>

#include "support/job_bed.hpp"

namespace cairn {
namespace {

TEST(SessionOwner, AnotherLivingJobOnThePrefixDirectoryIsRefused) {
  PrefixJobBed bed;
  bed.write(four_nodes(), {1, 2});
  const auto files = make_posix_files();
  const auto owner = *read_owner(*files, {bed.settings.prefix});
  auto living = Keeper::take_over(*files, *bed.clock, {bed.settings.prefix}, *owner);
  ASSERT_TRUE(living);
  {
    const auto background = make_background_thread();
    const auto heartbeat = background->repeat(100'000, living->heartbeat());
    bed.settings.job_id = "other";
    bed.run(four_nodes(), [](JobRank& rank) {
      const Status ready = rank.init();
      ASSERT_FALSE(ready);
      EXPECT_EQ(ready.error().code, Code::busy);
      EXPECT_NE(ready.error().text.find("job job of tester"), std::string::npos);
    });
  }
  bed.settings.job_id = "job";
  bed.run_well(four_nodes(), [](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 2);
    EXPECT_TRUE(rank.session->finalize());
  });
  bed.settings.job_id = "other";
  EXPECT_EQ(bed.restart(four_nodes()), 2) << "from the prefix directory";
}

/// Its epoch is closed: the call asks for a new one, as the next copy would.
TEST(SessionOwner, ACallByNameAsksForWhatAnotherHasTakenOver) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 1;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    for (const int dataset : {1, 2, 3}) rank.expect_written(dataset);
    for (const char* name : {"ckpt.1", "ckpt.2"}) {
      rank.comm.barrier();
      if (rank.number() == 0) {
        auto other =
            Keeper::take_over(*rank.posix, *bed.clock, {bed.settings.prefix}, {}, Claim::forced);
        ASSERT_TRUE(other && other->resign());
      }
      rank.comm.barrier();
      const bool drops = name == std::string("ckpt.1");
      const Status done =
          drops ? rank.session->datasets().drop(name) : rank.session->datasets().remove(name);
      EXPECT_TRUE(done) << done.error().text;
    }
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_EQ(bed.listed(), Names({"ckpt.3"}));
}

/// However often it is asked: what it cannot look at may well be there.
TEST(SessionOwner, NoCallByNameSucceedsWithoutTheDirectoryThatAnotherHasTakenOver) {
  PrefixJobBed bed;
  bed.settings.flush_interval = 1;
  std::atomic<bool> away = false;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    rank.comm.barrier();
    if (rank.number() == 0) {
      auto other =
          Keeper::take_over(*rank.posix, *bed.clock, {bed.settings.prefix}, {}, Claim::forced);
      ASSERT_TRUE(other && other->resign());
      away = true;
    }
    rank.comm.barrier();
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (!away || operation.name != "make_new_folder") return {};
      return fail(Code::io, "injected: cannot {} {}", operation.name, operation.path);
    };
    for (int asked = 0; asked < 2; ++asked) {
      EXPECT_FALSE(rank.session->datasets().current("ckpt.1")) << asked;
      EXPECT_FALSE(rank.session->datasets().drop("ckpt.1")) << asked;
    }
    rank.comm.barrier();
    away = false;
    rank.comm.barrier();
    const Status dropped = rank.session->datasets().drop("ckpt.1");
    EXPECT_TRUE(dropped) << dropped.error().text;
    rank.hook = nullptr;
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_EQ(bed.listed(), Names());
}

TEST(SessionOwner, TwoJobsWithoutNamesAreDistinguishedByTheirHosts) {
  PrefixJobBed bed;
  bed.settings.job_id = std::string(unnamed_job);
  bed.write(four_nodes(), {1, 2});
  const auto files = make_posix_files();
  OwnerRecord owner = **read_owner(*files, {bed.settings.prefix});
  ASSERT_EQ(owner.job_id, unnamed_job);
  owner.host = "elsewhere";
  auto living = Keeper::take_over(*files, *bed.clock, {bed.settings.prefix}, owner, Claim::forced);
  ASSERT_TRUE(living);
  {
    const auto background = make_background_thread();
    const auto heartbeat = background->repeat(100'000, living->heartbeat());
    bed.run(four_nodes(), [](JobRank& rank) {
      const Status ready = rank.init();
      ASSERT_FALSE(ready);
      EXPECT_EQ(ready.error().code, Code::busy);
    });
  }
  EXPECT_TRUE(living->resign());
  EXPECT_EQ(bed.restart(four_nodes()), 2);
}

/// The caller does everything, and there is no thread beside it.
class NoMoreThreads : public Background {
 public:
  void post(std::uint64_t bytes, std::function<void()> task) override {
    caller_->post(bytes, std::move(task));
  }
  void wait() override { caller_->wait(); }
  std::unique_ptr<Repeated> repeat(std::int64_t, std::function<void()>) override { return nullptr; }
  void in_parallel(int threads, const std::function<void()>& work) override {
    caller_->in_parallel(threads, work);
  }

 private:
  std::unique_ptr<Background> caller_ = make_foreground();
};

TEST(SessionOwner, AJobThatCannotGiveSignsOfLifeSaysSo) {
  PrefixJobBed bed;
  bed.write(four_nodes(), {1, 2});
  EXPECT_FALSE(bed.logs("signs of life")) << bed.log_text();
  bed.run(four_nodes(), [](JobRank& rank) {
    rank.background = std::make_unique<NoMoreThreads>();
    ASSERT_TRUE(rank.init());
    rank.expect_written(3);
  });
  EXPECT_TRUE(bed.logs("signs of life")) << bed.log_text();
}

// --- a directory that was away ---

/// The prefix directory can be unavailable, in one way or another.
class AwayBed : public PrefixJobBed {
 public:
  void put_away() { std::filesystem::rename(settings.prefix, away_); }
  /// A mount point without what is mounted there, or an unusable one.
  void put_in_its_place(bool empty_folder) {
    std::filesystem::create_directory(settings.prefix);
    if (!empty_folder) std::ofstream(settings.prefix + "/.cairn") << "no folder";
  }
  void bring_back() {
    std::filesystem::remove_all(settings.prefix);
    std::filesystem::rename(away_, settings.prefix);
  }

  /// As a rule no user may write to a mount point.
  static FileHook refuses_new_folders(const JobRank& rank) {
    return [&rank](const FileOperation& operation) -> Status {
      if (operation.name != "make_folder" || !operation.path.starts_with(rank.settings.prefix))
        return {};
      return fail(Code::io, "injected: may not write to {}", operation.path);
    };
  }

  /// Away while all ranks initialise, and back when `then` begins.
  void away_at_init(bool empty_folder, const RankMain& then) {
    put_away();
    put_in_its_place(empty_folder);
    run(four_nodes(), [&](JobRank& rank) {
      rank.hook = AwayBed::refuses_new_folders(rank);
      const Status ready = rank.init();
      ASSERT_TRUE(ready) << ready.error().text;
      rank.hook = nullptr;
      rank.comm.barrier();
      if (rank.number() == 0) bring_back();
      rank.comm.barrier();
      then(rank);
    });
  }

 private:
  const std::string away_ = node("pfs.away");
};

class SessionAway : public testing::TestWithParam<bool> {
 protected:
  AwayBed bed_;
};

TEST_P(SessionAway, HaveRestartLooksForItAgain) {
  bed_.write(four_nodes(), {1, 2});
  bed_.lose_all_nodes();
  bed_.away_at_init(GetParam(), [](JobRank& rank) { EXPECT_EQ(rank.restart(), 2); });
}

TEST_P(SessionAway, ARunThatIsToStopMayAskAgain) {
  bed_.write(four_nodes(), {1, 2});
  bed_.lose_all_nodes();
  bed_.settings.on_fetch_fail = OnFetchFail::stop;
  bed_.put_away();
  bed_.put_in_its_place(GetParam());
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_EQ(rank.session->have_restart().has_value(), GetParam())
        << "an empty folder is no error";
    if (rank.number() == 0) bed_.bring_back();
    rank.comm.barrier();
    EXPECT_EQ(rank.restart(), 2);
  });
}

TEST_P(SessionAway, ADeadFlushIsCarriedOnWhenItIsThereAgain) {
  bed_.lose_node_that_has_flushed();
  bed_.away_at_init(GetParam(), [](JobRank& rank) { EXPECT_EQ(rank.restart(), 4); });
  EXPECT_EQ(bed_.listed(), (Names{"ckpt.4", "ckpt.2"}));
}

TEST_P(SessionAway, TheNextDatasetIsCopiedThereAndNothingTwice) {
  bed_.write_and_finalize({1, 2}, flag_checkpoint | flag_output);
  bed_.away_at_init(GetParam(), [](JobRank& rank) {
    EXPECT_EQ(rank.restart(), 2);
    rank.expect_written(3, flag_checkpoint | flag_output);
  });
  EXPECT_TRUE(bed_.logs("dataset 3 (ckpt.3) is in")) << bed_.log_text();
  EXPECT_FALSE(bed_.logs("dataset 2 (ckpt.2) is in")) << bed_.log_text();
  EXPECT_EQ(bed_.listed(), (Names{"ckpt.3", "ckpt.2", "ckpt.1"}));
}

TEST_P(SessionAway, ItMayComeBackWhenTheRestartIsOver) {
  bed_.write_and_finalize({1, 2});
  bed_.put_away();
  bed_.put_in_its_place(GetParam());
  bed_.run(four_nodes(), [&](JobRank& rank) {
    rank.hook = AwayBed::refuses_new_folders(rank);
    ASSERT_TRUE(rank.init());
    EXPECT_EQ(rank.restart(), 2) << "from the cache";
    rank.hook = nullptr;
    rank.expect_written(3);
    if (rank.number() == 0) bed_.bring_back();
    rank.comm.barrier();
    rank.expect_written(4);
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_EQ(bed_.listed(), (Names{"ckpt.4", "ckpt.2"}));
}

/// Its number and its identity come after all that are there, whatever the clock says.
TEST_P(SessionAway, TheNextDatasetLooksForItAgain) {
  bed_.settings.flush_interval = 1;
  bed_.settings.on_fetch_fail = OnFetchFail::fresh;
  bed_.write_and_finalize({1, 2, 3});
  bed_.lose_all_nodes();
  bed_.clock =
      std::make_unique<SkewedClock>(1, -std::chrono::microseconds(std::chrono::hours(24)).count());
  bed_.away_at_init(GetParam(), [](JobRank& rank) {
    rank.expect_written(7);
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_TRUE(bed_.logs("dataset 4 (ckpt.7) is in")) << bed_.log_text();
  EXPECT_EQ(bed_.listed(), (Names{"ckpt.7", "ckpt.3", "ckpt.2", "ckpt.1"}));
  std::vector<std::string> damaged;
  const auto listing =
      read_listing(*make_posix_files(), PrefixFolder{bed_.settings.prefix}, damaged);
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->front().info.checkpoint, 4U) << "the levels go on from there";
  bed_.clock = make_system_clock();
  EXPECT_EQ(bed_.restart(four_nodes()), 7);
}

/// The program has been answered: it has nothing to go back to, and goes on.
TEST_P(SessionAway, WhatOtherRanksWroteKeepsNoRunFromGoingOnThatCouldNotSeeIt) {
  bed_.settings.flush_interval = 1;
  bed_.settings.on_fetch_fail = OnFetchFail::fresh;
  bed_.run_well({"n0", "n0", "n1", "n1"}, [](JobRank& rank) {
    rank.expect_written(1);
    EXPECT_TRUE(rank.session->finalize());
  });
  bed_.lose_all_nodes();
  bed_.put_away();
  bed_.put_in_its_place(GetParam());
  bed_.run(four_nodes(), [&](JobRank& rank) {
    rank.hook = AwayBed::refuses_new_folders(rank);
    ASSERT_TRUE(rank.init());
    EXPECT_FALSE(rank.session->have_restart().value());
    rank.hook = nullptr;
    rank.comm.barrier();
    if (rank.number() == 0) bed_.bring_back();
    rank.comm.barrier();
    for (const int dataset : {2, 3}) rank.expect_written(dataset);
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_EQ(bed_.restart(four_nodes()), 3);
}

INSTANTIATE_TEST_SUITE_P(Ways, SessionAway, testing::Bool(),
                         [](const auto& way) { return way.param ? "NotMounted" : "NotUsable"; });

// --- a directory that another job has taken over ---

/// A run of the job in the middle of which another owner comes.
class TakenBed : public PrefixJobBed {
 public:
  TakenBed() { settings.flush_interval = 1; }

  /// By force, as `cairn index --force`.
  Keeper take(const OwnerRecord& by) const {
    return *Keeper::take_over(*files_, *clock, {settings.prefix}, by, Claim::forced);
  }
  OwnerRecord owner() const { return **read_owner(*files_, {settings.prefix}); }

  OwnerRecord other_job() const {
    OwnerRecord other = owner();
    other.job_id = "other";
    return other;
  }

  /// Does `action` on one rank while the others wait.
  template <class Action>
  static void by_one(JobRank& rank, Action action) {
    rank.comm.barrier();
    if (rank.number() == 0) action();
    rank.comm.barrier();
  }

 private:
  std::unique_ptr<Files> files_ = make_posix_files();
};

/// Another job that has the directory, and gives signs of life until it ends.
class LivingOther {
 public:
  void take(const TakenBed& bed) {
    keeper_ = bed.take(bed.other_job());
    heartbeat_ = background_->repeat(100'000, keeper_->heartbeat());
  }
  void end() {
    heartbeat_.reset();
    EXPECT_TRUE(keeper_->resign());
  }

 private:
  const std::unique_ptr<Background> background_ = make_background_thread();
  std::optional<Keeper> keeper_;
  std::unique_ptr<Repeated> heartbeat_;
};

TEST(SessionTaken, ARunWaitsForTheOtherToEndAndGoesOnThen) {
  TakenBed bed;
  LivingOther other;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    TakenBed::by_one(rank, [&] { other.take(bed); });
    rank.expect_not_copied(2);
    rank.expect_not_copied(3);
    EXPECT_EQ(bed.listed(), Names{"ckpt.1"}) << "the other lives";
    TakenBed::by_one(rank, [&] { other.end(); });
    rank.expect_written(4);
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_TRUE(bed.logs("has taken over")) << bed.log_text();
  EXPECT_TRUE(bed.logs("belongs to job other")) << bed.log_text();
  EXPECT_EQ(bed.listed(), (Names{"ckpt.4", "ckpt.1"}));
  EXPECT_EQ(bed.owner().beat_us, 0) << "it has said that it ended";
}

/// Both jobs give their datasets and files the same names.
TEST(SessionTaken, WhatTheOtherHasPublishedMeanwhileIsNotHarmed) {
  TakenBed bed;
  PrefixJobBed other;
  other.settings.prefix = bed.settings.prefix;
  other.settings.job_id = "other";
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    const auto full = [&](const FileOperation& operation) -> Status {
      if (!operation.path.starts_with(rank.settings.prefix)) return {};
      return fail(Code::no_space, "injected: {} is full", operation.path);
    };
    rank.hook = full;
    rank.expect_not_copied(2);
    rank.hook = {};
    TakenBed::by_one(rank, [&] {
      EXPECT_TRUE(bed.take(bed.other_job()).resign());
      other.write_and_finalize({2});
    });
    rank.expect_not_all_copied();
  });
  EXPECT_TRUE(bed.logs("was written again")) << bed.log_text();
  EXPECT_EQ(bed.listed(), (Names{"ckpt.2", "ckpt.1"}));
  other.lose_all_nodes();
  EXPECT_EQ(other.restart(four_nodes()), 2) << "the other's own";
}

TEST(SessionTaken, WhatTheOtherHasPurgedIsCopiedAgainAtTheEnd) {
  for (const bool asks_before : {true, false}) {
    TakenBed bed;
    PrefixJobBed other;
    other.settings.prefix = bed.settings.prefix;
    other.settings.job_id = "other";
    other.settings.prefix_purge = true;
    bed.run_well(four_nodes(), [&](JobRank& rank) {
      rank.expect_written(1, flag_checkpoint | flag_output);
      rank.expect_written(2);
      TakenBed::by_one(rank, [&] {
        EXPECT_TRUE(bed.take(bed.other_job()).resign());
        other.write_and_finalize({});
      });
      EXPECT_EQ(bed.listed(), Names());
      rank.comm.barrier();
      if (asks_before) {
        EXPECT_TRUE(rank.session->datasets().drop("no such")) << "which owns it anew";
      }
      EXPECT_TRUE(rank.session->finalize());
    });
    EXPECT_EQ(bed.listed().at(0), "ckpt.2") << bed.log_text();
    bed.expect_own_files(2);
    bed.lose_all_nodes();
    EXPECT_EQ(bed.restart(four_nodes()), 2);
  }
}

/// It is there, as far as this run has ever known.
TEST(SessionTaken, WhatWasCopiedIsNotCalledMissingWhileAnotherHasTheDirectory) {
  TakenBed bed;
  LivingOther other;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    TakenBed::by_one(rank, [&] { EXPECT_TRUE(bed.take(bed.other_job()).resign()); });
    EXPECT_TRUE(rank.session->datasets().drop("no such")) << "which owns it anew";
    TakenBed::by_one(rank, [&] { other.take(bed); });
    const Status ended = rank.session->finalize();
    EXPECT_TRUE(ended) << ended.error().text;
  });
  other.end();
  EXPECT_TRUE(bed.logs("are still there")) << bed.log_text();
}

TEST(SessionTaken, WhatWasDroppedMeanwhileStaysDropped) {
  TakenBed bed;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    TakenBed::by_one(rank, [&] {
      Keeper command = bed.take(bed.owner());
      EXPECT_TRUE(command.drop(command.known().listing.at(0).info));
      EXPECT_TRUE(command.resign());
    });
    EXPECT_TRUE(rank.session->finalize());
  });
  EXPECT_EQ(bed.listed(), Names());
}

/// What was known of it before holds.
TEST(SessionTaken, AnOutputThatWasDroppedIsNotCalledMissingThoughTheListOfDroppedCannotBeRead) {
  TakenBed bed;
  bed.write_and_finalize({1}, flag_checkpoint | flag_output);
  Keeper command = bed.take(bed.owner());
  DatasetRecord held_back = command.known().listing.at(0);
  held_back.quarantined = true;
  EXPECT_TRUE(command.set_attempts({held_back}));
  EXPECT_TRUE(command.drop(held_back.info));
  EXPECT_TRUE(command.resign());
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    TakenBed::by_one(rank, [&] { EXPECT_TRUE(bed.take(bed.other_job()).resign()); });
    rank.hook = [](const FileOperation& operation) -> Status {
      if (operation.name != "list" || !operation.path.ends_with("/dropped")) return {};
      return fail(Code::io, "injected: {}", operation.path);
    };
    const Status ended = rank.session->finalize();
    EXPECT_TRUE(ended) << ended.error().text;
    rank.hook = nullptr;
  });
  EXPECT_TRUE(bed.logs("dropped datasets")) << bed.log_text();
}

TEST(SessionTaken, NumbersGoOnAfterThoseOfTheOther) {
  TakenBed bed;
  PrefixJobBed other;
  other.settings.prefix = bed.settings.prefix;
  other.settings.job_id = "other";
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    TakenBed::by_one(rank, [&] {
      EXPECT_TRUE(bed.take(bed.other_job()).resign());
      other.write_and_finalize({7, 8, 9, 10});
    });
    rank.expect_written(2);
    rank.expect_written(3);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.3", "ckpt.2", "ckpt.10", "ckpt.9", "ckpt.7", "ckpt.1"}));
  EXPECT_TRUE(bed.logs("dataset 6 (ckpt.3) is in")) << bed.log_text();
}

/// It would bring back the past.
TEST(SessionTaken, ARunIsOverWhenALaterOneOfItsJobHasBegun) {
  TakenBed bed;
  bed.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    TakenBed::by_one(rank, [&] {
      OwnerRecord later = bed.owner();
      ++later.run.chance;
      ++later.started_us;
      EXPECT_TRUE(bed.take(later).resign());
    });
    rank.expect_not_copied(2);
    rank.expect_not_all_copied();
  });
  EXPECT_TRUE(bed.logs("a later run of job job has begun")) << bed.log_text();
  EXPECT_EQ(bed.listed(), Names{"ckpt.1"});
}

}  // namespace
}  // namespace cairn
