// The halt file and the end of the allocation, as the ranks of a run see them.
#include <atomic>

#include "prefix/halt_file.hpp"
#include "support/job_bed.hpp"

namespace cairn {
namespace {

/// The test says what time it is.
class SetClock final : public Clock {
 public:
  std::int64_t now_us() override { return time_s * 1'000'000; }
  std::int64_t steady_us() override { return steady_us_ += 10; }
  void sleep_us(std::int64_t us) override { steady_us_ += us; }
  std::uint64_t random() override { return ++draws_; }

  std::atomic<std::int64_t> time_s = 1'800'000'000;

 private:
  std::atomic<std::int64_t> steady_us_ = 0;
  std::atomic<std::uint64_t> draws_ = 0;
};

class SessionHalt : public ::testing::Test {
 protected:
  SessionHalt() {
    auto clock = std::make_unique<SetClock>();
    clock_ = clock.get();
    bed_.clock = std::move(clock);
    bed_.settings.prefix = prefix_.path();
  }

  void ask(const std::function<void(HaltRecord&)>& change) {
    ASSERT_TRUE(HaltFile(*files_, *clock_, {prefix_.path()}).update(change));
  }
  HaltRecord record() { return *HaltFile(*files_, *clock_, {prefix_.path()}).read(); }
  std::int64_t now_s() const { return clock_->time_s; }

  /// What one rank does while no other is in a call.
  static void alone(JobRank& rank, const std::function<void()>& action) {
    rank.comm.barrier();
    if (rank.number() == 5) action();
    rank.comm.barrier();
  }
  static void expect(JobRank& rank, bool need, bool exit) {
    EXPECT_EQ(*rank.session->schedule().need_checkpoint(), need) << "rank " << rank.number();
    EXPECT_EQ(*rank.session->schedule().should_exit(), exit) << "rank " << rank.number();
  }
  /// The run goes on until `begin` is done, and then is to stop for `reason`.
  void expect_stop(const std::function<void()>& begin, const std::string& reason) {
    bed_.run_well(four_nodes(), [&](JobRank& rank) {
      expect(rank, false, false);
      alone(rank, begin);
      expect(rank, true, true);
      rank.expect_written(1);
      expect(rank, true, true);
      ASSERT_TRUE(rank.session->finalize());
    });
    EXPECT_TRUE(bed_.logs("(" + reason + ")")) << bed_.log_text();
    EXPECT_EQ(record().reason, reason);
    EXPECT_EQ(bed_.log_text().find("is to stop"), bed_.log_text().rfind("is to stop"));
  }

  TemporaryFolder prefix_;
  JobBed bed_;
  SetClock* clock_ = nullptr;
  std::unique_ptr<Files> files_ = make_posix_files();
};

TEST_F(SessionHalt, ByReason) {
  expect_stop([&] { ask([](HaltRecord& r) { r.reason = halt_reason::job_halted; }); },
              "JOB_HALTED");
}

/// Whatever moment it comes at, there is a last checkpoint; but a program that does not ask for it
/// is not kept going.
TEST_F(SessionHalt, BetweenTheTwoQuestionsOfAStep) {
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    EXPECT_FALSE(*rank.session->schedule().need_checkpoint());
    alone(rank, [&] { ask([](HaltRecord& r) { r.reason = halt_reason::job_halted; }); });
    EXPECT_FALSE(*rank.session->schedule().should_exit());
    expect(rank, true, true);
    alone(rank, [&] { ask([](HaltRecord& r) { r.reason.clear(); }); });
    EXPECT_FALSE(*rank.session->schedule().need_checkpoint());
    rank.expect_written(1);
    alone(rank, [&] { ask([](HaltRecord& r) { r.reason = halt_reason::job_halted; }); });
    EXPECT_TRUE(*rank.session->schedule().should_exit());
    alone(rank, [&] { ask([](HaltRecord& r) { r.reason.clear(); }); });
    EXPECT_FALSE(*rank.session->schedule().need_checkpoint());
    alone(rank, [&] { ask([](HaltRecord& r) { r.reason = halt_reason::job_halted; }); });
    EXPECT_FALSE(*rank.session->schedule().should_exit());
    EXPECT_TRUE(*rank.session->schedule().should_exit());
    ASSERT_TRUE(rank.session->finalize());
  });
}

TEST_F(SessionHalt, ByExitAfter) {
  ask([&](HaltRecord& r) { r.exit_after_s = now_s() + 100; });
  expect_stop([&] { clock_->time_s += 100; }, "EXIT_AFTER_TIME");
}

TEST_F(SessionHalt, ByExitBefore) {
  bed_.settings.halt_seconds = 40;
  ask([&](HaltRecord& r) { r.exit_before_s = now_s() + 100; });
  expect_stop([&] { clock_->time_s += 60; }, "EXIT_BEFORE_TIME");
}

TEST_F(SessionHalt, ByTheEndOfTheAllocation) {
  bed_.settings.halt_seconds = 40;
  bed_.settings.end_time_s = now_s() + 100;
  expect_stop([&] { clock_->time_s += 60; }, "TIME_LIMIT");
}

TEST_F(SessionHalt, HaltSecondsInTheFileWinOverTheParameter) {
  bed_.settings.halt_seconds = 40;
  bed_.settings.end_time_s = now_s() + 100;
  ask([](HaltRecord& r) { r.halt_seconds = 10; });
  clock_->time_s += 60;
  expect_stop([&] { clock_->time_s += 30; }, "TIME_LIMIT");
}

TEST_F(SessionHalt, AfterSoManyCheckpointsButNotOutputs) {
  ask([](HaltRecord& r) { r.checkpoints_left = 2; });
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    rank.expect_written(1);
    expect(rank, false, false);
    rank.expect_written(2, flag_output);
    rank.expect_written(3);
    expect(rank, true, true);
    rank.expect_written(4);
    ASSERT_TRUE(rank.session->finalize());
  });
  EXPECT_EQ(record().checkpoints_left, 0);
  EXPECT_EQ(record().reason, "NO_CHECKPOINTS_LEFT");
}

/// SCR_HALT_EXIT=1: the Complete of an output ends no program, and takes no answer from it.
TEST_F(SessionHalt, AProgramThatDoesNotAskMayBeEndedAfterACheckpointButNotAfterAnOutput) {
  const auto expect_end = [](JobRank& rank, bool ends) {
    EXPECT_EQ(*rank.session->schedule().may_end_here(), ends) << "rank " << rank.number();
  };
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    expect_end(rank, false);
    EXPECT_FALSE(*rank.session->schedule().need_checkpoint());
    alone(rank, [&] { ask([](HaltRecord& r) { r.reason = halt_reason::job_halted; }); });
    rank.expect_written(1, flag_output);
    expect_end(rank, false);
    EXPECT_FALSE(*rank.session->schedule().should_exit()) << "its last checkpoint is missing";
    ASSERT_TRUE(rank.session->start_checkpoint());
    EXPECT_FALSE(rank.session->complete_checkpoint(rank.number() != 2));
    expect_end(rank, false);
    rank.expect_written(2);
    expect_end(rank, true);
    rank.expect_written(3, flag_output);
    expect_end(rank, false);
    alone(rank, [&] { ask([](HaltRecord& r) { r.immediate = true; }); });
    expect_end(rank, true);
    ASSERT_TRUE(rank.session->finalize());
  });
}

TEST_F(SessionHalt, AFailedCheckpointIsNotCounted) {
  ask([](HaltRecord& r) { r.checkpoints_left = 1; });
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    ASSERT_TRUE(rank.session->start_checkpoint());
    EXPECT_FALSE(rank.session->complete_checkpoint(rank.number() != 2));
    expect(rank, false, false);
  });
  EXPECT_EQ(record().checkpoints_left, 1);
}

TEST_F(SessionHalt, AtOnceMeansWithoutAFurtherCheckpoint) {
  bed_.settings.checkpoint_interval = 1;
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    expect(rank, true, false);
    EXPECT_FALSE(rank.session->schedule().stops_at_once());
    alone(rank, [&] {
      ask([](HaltRecord& r) {
        r.reason = halt_reason::job_halted;
        r.immediate = true;
      });
    });
    expect(rank, false, true);
    EXPECT_TRUE(rank.session->schedule().stops_at_once());
    rank.expect_written(1);  // who makes one all the same may
    expect(rank, false, true);
  });
  EXPECT_TRUE(bed_.logs("without another checkpoint")) << bed_.log_text();
}

TEST_F(SessionHalt, IsSeenAtInitToo) {
  ask([](HaltRecord& r) { r.reason = halt_reason::job_halted; });
  bed_.run_well(four_nodes(), [](JobRank&) {});
  EXPECT_TRUE(bed_.logs("(JOB_HALTED)")) << bed_.log_text();
}

TEST_F(SessionHalt, ARunThatCameToItsEndDoesNotStopTheNext) {
  ask([](HaltRecord& r) { r.checkpoints_left = 9; });
  for (int run = 0; run < 2; ++run)
    bed_.run_well(four_nodes(), [&](JobRank& rank) {
      rank.restart();
      expect(rank, false, false);
      rank.expect_written(1 + run);
      ASSERT_TRUE(rank.session->finalize());
    });
  EXPECT_EQ(record().reason, "SCR_FINALIZE_CALLED");
  EXPECT_EQ(record().checkpoints_left, 7);
}

TEST_F(SessionHalt, WithoutAHaltThePrefixDirectoryHasNoHaltFile) {
  bed_.run_well(four_nodes(), [&](JobRank& rank) {
    expect(rank, false, false);
    rank.expect_written(1);
    ASSERT_TRUE(rank.session->finalize());
  });
  EXPECT_FALSE(std::filesystem::exists(prefix_.path() + "/.cairn/halt"));
}

/// Whatever fails in Cairn's folder of the prefix directory, the checkpoint is made.
TEST_F(SessionHalt, AHaltFileThatCannotBeReadOrWrittenStopsNothing) {
  ask([](HaltRecord& r) { r.checkpoints_left = 5; });
  bed_.run(four_nodes(), [&](JobRank& rank) {
    rank.hook = [](const FileOperation& operation) -> Status {
      if (operation.path.find("/.cairn") == std::string_view::npos) return {};
      return fail(Code::io, "injected: cannot {} {}", operation.name, operation.path);
    };
    ASSERT_TRUE(rank.init());
    expect(rank, false, false);
    rank.expect_written(1);
    expect(rank, false, false);
    ASSERT_TRUE(rank.session->finalize());
  });
  EXPECT_TRUE(bed_.logs("injected")) << bed_.log_text();
}

}  // namespace
}  // namespace cairn
