#include "session/halting.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "files/background.hpp"
#include "files/hooked_files.hpp"
#include "files/posix_files.hpp"
#include "files/temporary_folder.hpp"

namespace cairn {
namespace {

constexpr std::int64_t now_s = 1'800'000'000;

std::string reason_of(const HaltRecord& record, const Settings& settings = {}) {
  const auto cause = halt_cause(record, settings, now_s);
  return cause ? std::string(cause->reason) : "";
}

TEST(HaltCause, NothingAskedForNothingHolds) { EXPECT_EQ(reason_of({}), ""); }

TEST(HaltCause, CheckpointsLeft) {
  HaltRecord record;
  record.checkpoints_left = 1;
  EXPECT_EQ(reason_of(record), "");
  record.checkpoints_left = 0;
  EXPECT_EQ(reason_of(record), "NO_CHECKPOINTS_LEFT");
}

TEST(HaltCause, ExitBeforeLessHaltSeconds) {
  HaltRecord record;
  Settings settings;
  record.exit_before_s = now_s + 1;
  EXPECT_EQ(reason_of(record), "");
  settings.halt_seconds = 1;
  EXPECT_EQ(reason_of(record, settings), "EXIT_BEFORE_TIME");
  record.halt_seconds = 0;
  EXPECT_EQ(reason_of(record, settings), "") << "that of the file counts";
  record.exit_before_s = now_s;
  EXPECT_EQ(reason_of(record, settings), "EXIT_BEFORE_TIME");
}

TEST(HaltCause, ExitAfter) {
  HaltRecord record;
  record.exit_after_s = now_s + 1;
  record.halt_seconds = 100;
  EXPECT_EQ(reason_of(record), "");
  record.exit_after_s = now_s;
  EXPECT_EQ(reason_of(record), "EXIT_AFTER_TIME");
}

TEST(HaltCause, EndOfTheAllocation) {
  HaltRecord record;
  Settings settings;
  settings.end_time_s = now_s - 5;
  EXPECT_EQ(reason_of(record, settings), "") << "nobody has asked for it";
  settings.end_time_s = now_s + 100;
  settings.halt_seconds = 99;
  EXPECT_EQ(reason_of(record, settings), "");
  settings.halt_seconds = 100;
  EXPECT_EQ(reason_of(record, settings), "TIME_LIMIT");
  record.halt_seconds = 99;
  EXPECT_EQ(reason_of(record, settings), "") << "that of the file counts";
  settings.halt_seconds = 0;
  record.halt_seconds = 100;
  EXPECT_EQ(reason_of(record, settings), "TIME_LIMIT");
  settings.end_time_s = 0;
  EXPECT_EQ(reason_of(record, settings), "") << "the end is not known";
}

TEST(HaltCause, ReasonsButTheLibrarysOwn) {
  HaltRecord record;
  for (const char* reason : {"JOB_HALTED", "MAINTENANCE"}) {
    record.reason = reason;
    EXPECT_EQ(reason_of(record), reason);
  }
  for (const char* reason : {"SCR_FINALIZE_CALLED", "TIME_LIMIT", "NO_CHECKPOINTS_LEFT"}) {
    record.reason = reason;
    EXPECT_EQ(reason_of(record), "") << reason;
  }
}

class StoppedClock final : public Clock {
 public:
  std::int64_t now_us() override { return time_s * 1'000'000 + 999'999; }
  std::int64_t steady_us() override { return steady_us_; }
  void sleep_us(std::int64_t us) override { steady_us_ += us; }
  std::uint64_t random() override { return 4; }
  std::int64_t time_s = now_s;

 private:
  std::int64_t steady_us_ = 0;
};

class HaltingTest : public ::testing::Test {
 protected:
  using State = Halting::State;

  HaltingTest() { settings_.prefix = prefix_.path(); }

  Halting halting() {
    return {*files_, clock_, settings_,
            Log([this](Severity, const std::string& text) { logged_ += text + "\n"; }), events_};
  }
  HaltFile file() { return {*posix_, clock_, PrefixFolder{settings_.prefix}}; }
  HaltRecord record() { return *file().read(); }
  void ask(const std::function<void(HaltRecord&)>& change) { ASSERT_TRUE(file().update(change)); }
  void ask_for(const std::string& reason) {
    ask([&](HaltRecord& r) { r.reason = reason; });
  }
  bool was_logged(const std::string& text) const { return logged_.find(text) != std::string::npos; }
  std::ptrdiff_t lines() const { return std::count(logged_.begin(), logged_.end(), '\n'); }

  TemporaryFolder prefix_;
  Settings settings_;
  StoppedClock clock_;
  std::unique_ptr<Files> posix_ = make_posix_files();
  EventLog events_{*posix_, clock_, settings_, Log(), EventLog::Part::silent};
  FileHook hook_;
  std::unique_ptr<Files> files_ = make_hooked_files(
      *posix_,
      [this](const FileOperation& operation) { return hook_ ? hook_(operation) : Status{}; });
  std::string logged_;
};

TEST_F(HaltingTest, WithoutAHaltNothingIsReportedOrWritten) {
  Halting run = halting();
  run.begin();
  EXPECT_EQ(run.look(), State::goes_on);
  run.count_checkpoint();
  run.end();
  EXPECT_EQ(logged_, "");
  EXPECT_TRUE(std::filesystem::is_empty(prefix_.path()));
}

TEST_F(HaltingTest, WithoutAPrefixDirectoryNothingIsReportedOrWritten) {
  settings_.prefix = prefix_ / "gone";
  settings_.end_time_s = now_s + 10;
  settings_.halt_seconds = 20;
  Halting run = halting();
  run.begin();
  EXPECT_EQ(run.look(), State::halts);
  run.count_checkpoint();
  run.end();
  EXPECT_TRUE(was_logged("(TIME_LIMIT)")) << logged_;
  EXPECT_EQ(lines(), 1) << logged_;
  EXPECT_TRUE(std::filesystem::is_empty(prefix_.path()));
}

TEST_F(HaltingTest, ARequestIsSeenReportedOnceAndKeptForTheNextRun) {
  Halting run = halting();
  run.begin();
  EXPECT_EQ(run.look(), State::goes_on);
  ask_for("JOB_HALTED");
  EXPECT_EQ(run.look(), State::halts);
  EXPECT_EQ(run.look(), State::halts);
  EXPECT_EQ(lines(), 1) << logged_;
  EXPECT_TRUE(was_logged("after its next checkpoint") && was_logged("(JOB_HALTED)") &&
              was_logged("cairn halt --remove --prefix " + settings_.prefix))
      << logged_;
  run.end();
  EXPECT_EQ(record().reason, "JOB_HALTED");
  Halting next = halting();
  next.begin();
  EXPECT_EQ(next.look(), State::halts);
}

TEST_F(HaltingTest, AtOnceIsReportedAsThatAndCanBeTakenBack) {
  ask_for("JOB_HALTED");
  Halting run = halting();
  run.begin();
  ask([](HaltRecord& r) { r.immediate = true; });
  EXPECT_EQ(run.look(), State::halts_at_once);
  EXPECT_TRUE(was_logged("now, without another checkpoint")) << logged_;
  ASSERT_TRUE(file().remove());
  EXPECT_EQ(run.look(), State::goes_on);
  EXPECT_TRUE(was_logged("was taken back")) << logged_;
  EXPECT_EQ(lines(), 3) << logged_;
}

TEST_F(HaltingTest, CheckpointsAreCountedDownToNoLessThanNothing) {
  ask([](HaltRecord& r) { r.checkpoints_left = 2; });
  Halting run = halting();
  run.begin();
  run.count_checkpoint();
  EXPECT_EQ(record().checkpoints_left, 1);
  EXPECT_EQ(run.look(), State::goes_on);
  run.count_checkpoint();
  EXPECT_EQ(run.look(), State::halts);
  run.count_checkpoint();
  EXPECT_EQ(record().checkpoints_left, 0);
  EXPECT_EQ(record().reason, "NO_CHECKPOINTS_LEFT");
  run.end();
  EXPECT_EQ(record().reason, "NO_CHECKPOINTS_LEFT") << "it says more than that the run has ended";
  EXPECT_EQ(lines(), 1) << logged_;
}

TEST_F(HaltingTest, WhatCannotBeWrittenIsCountedAllTheSame) {
  ask([](HaltRecord& r) { r.checkpoints_left = 3; });
  Halting run = halting();
  run.begin();
  hook_ = [](const FileOperation& operation) -> Status {
    if (operation.name == "create") return fail(Code::io, "read-only file system");
    return {};
  };
  run.count_checkpoint();
  run.count_checkpoint();
  EXPECT_EQ(record().checkpoints_left, 3);
  EXPECT_EQ(run.look(), State::goes_on);
  EXPECT_EQ(lines(), 1) << "warned of once: " << logged_;
  run.count_checkpoint();
  EXPECT_EQ(run.look(), State::halts);
  hook_ = {};
  run.count_checkpoint();
  EXPECT_EQ(record().checkpoints_left, 0);
}

/// The file has its new content, and its directory cannot be synced once: nothing is subtracted
/// again.
TEST_F(HaltingTest, ACheckpointIsCountedOnceWhereTheSyncFails) {
  for (const bool is_watched : {false, true}) {
    ASSERT_TRUE(file().remove());
    ask([](HaltRecord& r) { r.checkpoints_left = 5; });
    std::atomic<int> failures = 1;
    hook_ = [&](const FileOperation& operation) -> Status {
      const bool syncs = operation.name == "sync_folder" && operation.path.ends_with("/.cairn");
      return syncs && failures-- == 1 ? fail(Code::io, "injected") : Status{};
    };
    const auto background = make_background_thread();
    Halting run = halting();
    run.begin();
    if (is_watched) run.watch(*background);
    run.count_checkpoint();
    while (failures == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(is_watched ? 300 : 0));
    EXPECT_EQ(record().checkpoints_left, 4) << is_watched;
    run.count_checkpoint();
    run.end();
    EXPECT_EQ(record().checkpoints_left, 3) << is_watched;
    EXPECT_TRUE(was_logged("injected")) << logged_;
    logged_.clear();
    hook_ = {};
  }
}

/// Else it would hold the lock for long, beside busy cores.
TEST_F(HaltingTest, TheThreadThatLocksTheFileHasTheProgramsPriority) {
  ask([](HaltRecord& r) { r.checkpoints_left = 5; });
  Halting run = halting();
  run.begin();
  std::promise<int> policy;
  std::atomic<bool> is_known = false;
  hook_ = [&, program = std::this_thread::get_id()](const FileOperation& operation) -> Status {
    const bool locks = operation.name == "lock";
    if (locks && std::this_thread::get_id() != program && !is_known.exchange(true))
      policy.set_value(::sched_getscheduler(0));
    return {};
  };
  const auto background = make_background_thread();
  run.watch(*background);
  run.count_checkpoint();
  EXPECT_EQ(policy.get_future().get(), ::sched_getscheduler(0));
  run.end();
}

TEST_F(HaltingTest, TheReasonOfAConditionIsRecorded) {
  const auto recorded = [&](const std::function<void(HaltRecord&)>& change) {
    EXPECT_TRUE(file().remove());
    ask(change);
    Halting run = halting();
    run.begin();
    EXPECT_EQ(run.look(), State::halts);
    return record().reason;
  };
  EXPECT_EQ(recorded([](HaltRecord& r) { r.exit_before_s = now_s; }), "EXIT_BEFORE_TIME");
  EXPECT_EQ(recorded([](HaltRecord& r) { r.exit_after_s = now_s; }), "EXIT_AFTER_TIME");
  EXPECT_EQ(recorded([](HaltRecord& r) { r.checkpoints_left = 0; }), "NO_CHECKPOINTS_LEFT");
  settings_.end_time_s = now_s + 10;
  EXPECT_EQ(recorded([](HaltRecord& r) { r.halt_seconds = 10; }), "TIME_LIMIT");
}

TEST_F(HaltingTest, ARunThatEndsSaysSoToTheNextWhichGoesOn) {
  ask([](HaltRecord& r) { r.checkpoints_left = 5; });
  Halting run = halting();
  run.begin();
  run.end();
  EXPECT_EQ(record().reason, "SCR_FINALIZE_CALLED");
  Halting next = halting();
  next.begin();
  EXPECT_EQ(next.look(), State::goes_on);
  EXPECT_EQ(record().reason, "");
  EXPECT_EQ(record().checkpoints_left, 5);
}

TEST_F(HaltingTest, AConditionThatHoldsNoLongerDoesNotStopTheNextRun) {
  settings_.end_time_s = now_s + 10;
  settings_.halt_seconds = 60;
  Halting run = halting();
  run.begin();
  EXPECT_EQ(record().reason, "TIME_LIMIT");
  settings_.end_time_s = now_s + 10'000;
  Halting next = halting();
  next.begin();
  EXPECT_EQ(next.look(), State::goes_on);
  EXPECT_EQ(record().reason, "");
  ask([](HaltRecord& r) { r.exit_after_s = now_s - 10; });
  Halting again = halting();
  again.begin();
  EXPECT_EQ(again.look(), State::halts) << "but one that holds does";
}

TEST_F(HaltingTest, ADamagedFileIsWarnedOfOnceAndStopsNothing) {
  std::filesystem::create_directory(prefix_ / ".cairn");
  std::ofstream(prefix_ / ".cairn/halt") << "nonsense";
  Halting run = halting();
  run.begin();
  EXPECT_EQ(run.look(), State::goes_on);
  run.count_checkpoint();
  run.end();
  EXPECT_EQ(lines(), 1) << logged_;
  EXPECT_TRUE(was_logged("is damaged") && was_logged("cairn halt --remove")) << logged_;
}

TEST_F(HaltingTest, APrefixDirectoryThatCannotBeWrittenIsAWarning) {
  hook_ = [](const FileOperation& operation) -> Status {
    if (operation.name == "make_folder") return fail(Code::io, "permission denied");
    return {};
  };
  settings_.end_time_s = now_s + 10;
  settings_.halt_seconds = 60;
  Halting run = halting();
  run.begin();
  EXPECT_EQ(run.look(), State::halts);
  run.count_checkpoint();
  run.end();
  EXPECT_TRUE(was_logged("permission denied")) << logged_;
  EXPECT_EQ(lines(), 2) << logged_;
}

}  // namespace
}  // namespace cairn
