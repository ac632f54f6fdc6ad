// Which datasets the program waits for, where the checkpoint descriptors differ in that.
#include <atomic>
#include <thread>

#include "support/safety_bed.hpp"

namespace cairn {
namespace {

/// Every second checkpoint has a descriptor of its own.
class LevelsBed : public SafetyBed {
 public:
  explicit LevelsBed(bool is_usual_async) {
    settings.flush_async = is_usual_async;
    settings.stores[0].count = 9;
    CheckpointSettings& second = settings.checkpoints.emplace_back(settings.checkpoints[0]);
    second.id = 1;
    second.interval = 2;
    second.flush_async = !is_usual_async;
  }

  /// Until let_go(), or for ten seconds: a call that waits for it must not hang for ever.
  void hold_copy_of(int dataset) {
    hook = [this, part = fmt::format("/ckpt.{}/", dataset)](
               int /*rank*/, const FileOperation& operation) -> Status {
      if (!stages(operation) || operation.path.find(part) == std::string::npos) return {};
      for (int ms = 0; ms < 10'000 && is_held_; ++ms) sleep_ms(1);
      return {};
    };
  }
  void let_go() { is_held_ = false; }

 private:
  std::atomic<bool> is_held_ = true;
};

TEST(SessionAsyncLevels, TheProgramWaitsForNoCopyOfADescriptorWithFlushAsync) {
  LevelsBed bed(false);
  bed.hold_copy_of(2);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    EXPECT_TRUE(bed.is_listed(1));
    rank.expect_written(2);
    EXPECT_FALSE(bed.is_listed(2));
    EXPECT_EQ(safeties(rank, {1, 2}), "flushed protected");
    rank.comm.barrier();
    bed.let_go();
    expect_reached(rank, 2, Safety::flushed);
    rank.expect_written(3);
    EXPECT_TRUE(bed.is_listed(3));
    finalize(rank);
  });
  EXPECT_TRUE(bed.arrived_by_itself(2)) << bed.log_text();
  for (const int dataset : {1, 2, 3}) bed.expect_own_files(dataset);
}

TEST(SessionAsyncLevels, TheProgramWaitsForACopyOfADescriptorWithoutFlushAsync) {
  LevelsBed bed(true);
  bed.hold_copy_of(1);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    EXPECT_FALSE(bed.is_listed(1));
    std::thread opens;
    std::atomic<bool> is_open = false;
    if (rank.number() == 0)
      opens = std::thread([&] {
        sleep_ms(50);
        is_open = true;
        bed.let_go();
      });
    rank.expect_written(2);
    EXPECT_EQ(safeties(rank, {1, 2}), "flushed flushed") << "older copies end first";
    if (opens.joinable()) {
      EXPECT_TRUE(is_open);
      opens.join();
    }
    finalize(rank);
  });
  EXPECT_FALSE(bed.arrived_by_itself(2)) << bed.log_text();
  EXPECT_EQ(bed.listed(), (Names{"ckpt.2", "ckpt.1"}));
  for (const int dataset : {1, 2}) bed.expect_own_files(dataset);
}

/// Of a rank's own thread, between its calls of Init and Finalize.
thread_local bool is_between_init_and_end = false;

/// As with SCR_FLUSH_ASYNC=1.
TEST(SessionAsyncLevels, NoCallLooksAtThePrefixDirectoryIfAllDescriptorsHaveFlushAsync) {
  LevelsBed bed(false);
  bed.settings.checkpoints[0].flush_async = true;
  bed.settings.log = true;
  bed.settings.log_syslog = false;
  std::mutex mutex;
  std::string looks;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    if (operation.path.starts_with(bed.settings.prefix) && is_between_init_and_end) {
      const std::scoped_lock lock(mutex);
      looks += fmt::format("{} {}\n", operation.name, operation.path);
    }
    return {};
  };
  bed.run_async([&](JobRank& rank) {
    is_between_init_and_end = true;
    for (const int dataset : {1, 2}) {
      EXPECT_FALSE(rank.session->schedule().should_exit().value());
      rank.expect_written(dataset);
    }
    is_between_init_and_end = false;
    finalize(rank);
  });
  EXPECT_EQ(looks, "");
}

TEST(SessionAsyncLevels, ADescriptorForOutputsMayMakeTheProgramWaitForThem) {
  LevelsBed bed(true);
  bed.settings.checkpoints[1].interval = 1;
  bed.settings.checkpoints[1].output = true;
  bed.settings.flush_interval = 0;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    EXPECT_TRUE(bed.is_listed(1));
    finalize(rank);
  });
  EXPECT_FALSE(bed.arrived_by_itself(1)) << bed.log_text();
}

/// The program will wait for it anyway, whenever it is tried again.
TEST(SessionAsyncLevels, AFailureOfACopyThatIsWaitedForHoldsNoOtherBack) {
  LevelsBed bed(false);
  std::atomic<bool> is_full = true;
  bed.hook = [&](int /*rank*/, const FileOperation& operation) -> Status {
    const bool fails =
        is_full && stages(operation) && operation.path.find("/ckpt.1/") != std::string::npos;
    return fails ? fail(Code::no_space, "injected at {}", operation.path) : Status{};
  };
  bed.run_async([&](JobRank& rank) {
    rank.expect_not_copied(1, flag_output | flag_checkpoint);
    rank.expect_written(2);
    expect_reached(rank, 2, Safety::flushed);
    rank.comm.barrier();
    is_full = false;
    finalize(rank);
  });
  EXPECT_TRUE(bed.arrived_by_itself(2)) << bed.log_text();
  EXPECT_EQ(bed.listed(), (Names{"ckpt.2", "ckpt.1"}));
}

/// Nothing is left to a drain that the program said it waits for.
TEST(SessionAsyncLevels, TheEndOfTheRunCopiesWhatIsToBeWaitedFor) {
  LevelsBed bed(true);
  bed.settings.flush_interval = 100;
  bed.settings.flush_at_end_seconds = 100;
  bed.run_async([&](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset);
    finalize(rank);
  });
  EXPECT_TRUE(bed.is_listed(2));
  EXPECT_FALSE(bed.arrived_by_itself(2)) << bed.log_text();
}

}  // namespace
}  // namespace cairn
