// Waiting until a dataset survives more: cairn.h.
#include <cmath>
#include <fstream>

#include "support/behind_bed.hpp"
#include "support/safety_bed.hpp"

namespace cairn {
namespace {

TEST(SessionWaiting, AWaitEndsInTimeAndAgainWithTheCopy) {
  SafetyBed bed;
  Gate gate;
  bed.hold_copies_at(gate);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    expect_too_late(rank, 1, Safety::flushed, 0);
    const std::int64_t from_us = rank.clock.steady_us();
    expect_too_late(rank, 1, Safety::flushed, 0.2);
    EXPECT_GE(rank.clock.steady_us() - from_us, 190'000);
    EXPECT_LE(rank.clock.steady_us() - from_us, 5'000'000);
    expect_reached(rank, 1, Safety::protected_, 0);
    rank.comm.barrier();
    gate.open();
    expect_reached(rank, 1, Safety::flushed, -1);
    finalize(rank);
  });
}

/// The second of two has to wait for the first.
TEST(SessionWaiting, AWaitForTheSecondOfTwoCopiesEndsWithThat) {
  SafetyBed bed;
  bed.run_async([](JobRank& rank) {
    for (const int dataset : {1, 2}) rank.expect_written(dataset, flag_output);
    expect_reached(rank, 2, Safety::flushed);
    EXPECT_EQ(safeties(rank, {1, 2}), "flushed flushed");
    finalize(rank);
  });
}

TEST(SessionWaiting, ADamagedBlockIsRepairedDuringTheWait) {
  DamagedBed bed;
  bed.run_async([&](JobRank& rank) {
    bed.write_damaged(rank);
    expect_reached(rank, 1, Safety::flushed);
    finalize(rank);
  });
  EXPECT_TRUE(bed.logs("were repaired")) << bed.log_text();
  bed.expect_own_files(1);
}

TEST(SessionWaiting, DamageThatCannotBeRepairedEndsTheWait) {
  DamagedBed bed;
  bed.settings.checkpoints[0].scheme = Scheme::single;
  bed.settings.log_json = true;
  bed.run_async([&](JobRank& rank) {
    bed.write_damaged(rank);
    expect_error(rank, 1, Safety::flushed, -1, Code::lost);
    EXPECT_EQ(safety(rank, 1), Safety::none);
    expect_error(rank, 1, Safety::flushed, -1, Code::lost);
  });
  for (const auto& left : std::filesystem::recursive_directory_iterator(bed.settings.prefix)) {
    const std::string name = left.path().filename();
    EXPECT_FALSE(name.starts_with(".cairn.") || name.starts_with("dataset.1.")) << left.path();
  }
  const std::string log = read_all(PrefixFolder{bed.settings.prefix}.job().json_log());
  EXPECT_NE(log.find("ASYNC_FLUSH_FAIL"), std::string::npos) << log;
}

/// Whether it is copied at the end is not known before: a newer one may take its place.
TEST(SessionWaiting, ACheckpointThatIsNotToBeCopiedIsAnErrorAtOnce) {
  SafetyBed bed;
  bed.settings.flush_interval = 5;
  bed.run_async([](JobRank& rank) {
    rank.expect_written(1);
    expect_error(rank, 1, Safety::flushed, -1, Code::bad_argument);
    expect_error(rank, 2, Safety::writing, -1, Code::not_found);
    expect_reached(rank, 1, Safety::protected_, -1);
    finalize(rank);
  });
}

TEST(SessionWaiting, WrongArgumentsAreTheSameErrorOnAllRanks) {
  SafetyBed bed;
  bed.run_async([](JobRank& rank) {
    const auto code_of = [&](const std::string& name, int wanted, double seconds) {
      const auto reached = rank.session->safety().wait(name, static_cast<Safety>(wanted), seconds);
      return reached ? Code::ok : reached.error().code;
    };
    rank.expect_written(1);
    EXPECT_EQ(code_of("", 2, 0), Code::bad_argument);
    EXPECT_EQ(code_of("ckpt.1", 0, 0), Code::bad_argument);
    EXPECT_EQ(code_of("ckpt.1", 5, 0), Code::bad_argument);
    EXPECT_EQ(code_of("ckpt.1", 2, std::nan("")), Code::bad_argument);
    EXPECT_EQ(code_of(rank.number() == 3 ? "ckpt.1" : "ckpt.2", 2, 0), Code::differs);
    EXPECT_EQ(code_of("ckpt.1", rank.number() == 3 ? 2 : 3, 0), Code::differs);
    EXPECT_EQ(code_of("ckpt.1", 2, rank.number()), Code::differs);
    ASSERT_TRUE(rank.session->start_checkpoint());
    EXPECT_EQ(code_of("ckpt.1", 2, 0), Code::wrong_state);
    ASSERT_TRUE(rank.write_files(9));
    ASSERT_TRUE(rank.session->complete_checkpoint(true));
    finalize(rank);
  });
}

TEST(SessionWaiting, AFullPrefixDirectoryEndsTheWaitAndAnotherWaitTriesAgain) {
  SafetyBed bed;
  bed.clock = std::make_unique<SkewedClock>(40);
  std::atomic<bool> is_full = true;
  bed.fill_while(is_full);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1, flag_output);
    expect_error(rank, 1, Safety::flushed, -1, Code::not_copied);
    EXPECT_EQ(safety(rank, 1), Safety::protected_);
    rank.comm.barrier();
    is_full = false;
    expect_reached(rank, 1, Safety::flushed, -1);
    finalize(rank);
  });
}

/// Dataset 1 is an output, and 3 supersedes 2. The copies of 1 and 2 were given up. A copy of 2
/// that begins now would read what is removed meanwhile.
TEST(SessionWaiting, AWaitForACopyThatIsDueWaitsUntilWhatIsSupersededIsGone) {
  SafetyBed bed;
  bed.settings.checkpoints[0].behind = true;
  bed.settings.stores[0].count = 1;
  bed.clock = std::make_unique<SkewedClock>(10);
  std::atomic<bool> is_full = true;
  bed.fill_while(is_full);
  bed.run_async([&](JobRank& rank) {
    EXPECT_TRUE(rank.write(1, flag_output));
    (void)rank.write(2);
    EXPECT_TRUE(rank.session->have_restart()) << "gives the copies up";
    rank.comm.barrier();
    is_full = false;
    EXPECT_TRUE(rank.session->start_output("ckpt.3", flag_checkpoint));
    Held held(rank);
    (void)rank.session->complete_output(rank.write_files(3).has_value());
    EXPECT_EQ(safety(rank, 3), Safety::written);
    std::atomic<bool> is_released = false;
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      is_released = true;
      held.release();
    });
    expect_reached(rank, 1, Safety::flushed, -1);
    EXPECT_TRUE(is_released);
    later.join();
    expect_reached(rank, 3, Safety::flushed, -1);
    EXPECT_EQ(safety(rank, 2), Safety::none);
    finalize(rank);
  });
}

TEST(SessionWaiting, TheTimeIsForProtectionAndCopyTogether) {
  SafetyBed bed;
  Gate gate;
  bed.settings.checkpoints[0].behind = true;
  bed.hold_copies_at(gate);
  bed.run_async([&](JobRank& rank) {
    EXPECT_TRUE(rank.session->start_output("ckpt.1", flag_checkpoint));
    Held held(rank);
    EXPECT_TRUE(rank.session->complete_output(rank.write_files(1).has_value()));
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(600));
      held.release();
    });
    const std::int64_t from_us = rank.clock.steady_us();
    expect_too_late(rank, 1, Safety::flushed, 1);
    const std::int64_t waited_us = rank.clock.steady_us() - from_us;
    later.join();
    EXPECT_GE(waited_us, 950'000);
    EXPECT_LE(waited_us, sanitized ? 5'000'000 : 1'250'000);
    EXPECT_EQ(safety(rank, 1), Safety::protected_);
    rank.comm.barrier();
    gate.open();
    finalize(rank);
  });
}

/// Without threads the copy fails within Complete, and a wait is one more try.
TEST(SessionWaiting, AWaitTriesAgainWhatCouldNotBeCopied) {
  SafetyBed bed;
  bed.settings.flush_async = false;
  std::atomic<bool> is_full = true;
  bed.fill_while(is_full);
  bed.run_async([&](JobRank& rank) {
    rank.expect_not_copied(1, flag_output);
    expect_too_late(rank, 1, Safety::flushed, 0);
    expect_error(rank, 1, Safety::flushed, 1, Code::not_copied);
    rank.comm.barrier();
    is_full = false;
    expect_reached(rank, 1, Safety::flushed, 1);
    EXPECT_EQ(safety(rank, 1), Safety::flushed);
    finalize(rank);
  });
}

TEST(SessionWaiting, WithoutAThreadTheWaitCopies) {
  SafetyBed bed;
  bed.run_well(four_nodes(), [](JobRank& rank) {
    rank.expect_written(1);
    EXPECT_EQ(safety(rank, 1), Safety::protected_);
    expect_reached(rank, 1, Safety::flushed);
    finalize(rank);
  });
}

TEST(SessionWaiting, TheLogSaysWhatWasWaitedFor) {
  SafetyBed bed;
  Gate gate;
  bed.settings.log_json = true;
  bed.hold_copies_at(gate);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    expect_too_late(rank, 1, Safety::flushed, 0.05);
    rank.comm.barrier();
    gate.open();
    finalize(rank);
  });
  const std::string log = read_all(PrefixFolder{bed.settings.prefix}.job().json_log());
  const auto waited = log.find("\"event\":\"ASYNC_FLUSH_WAIT\"");
  EXPECT_LT(log.find("ASYNC_FLUSH_START"), waited) << log;
  EXPECT_LT(waited, log.find("ASYNC_FLUSH_SUCCESS")) << log;
}

class SlowDirectoryBed : public SafetyBed {
 public:
  SlowDirectoryBed() {
    settings.log_json = true;
    hook = [this](int /*rank*/, const FileOperation& operation) -> Status {
      if (is_slow && operation.path.starts_with(settings.prefix)) sleep_ms(20);
      return {};
    };
  }
  /// In the log, before the end of the run.
  bool has_waited(const std::string& what) const {
    std::ifstream log(PrefixFolder{settings.prefix}.job().json_log());
    for (std::string line; std::getline(log, line) && line.find("FINALIZE") == std::string::npos;)
      if (line.find("ASYNC_FLUSH_WAIT") != std::string::npos &&
          line.find(what) != std::string::npos)
        return true;
    return false;
  }

  std::atomic<bool> is_slow = false;
};

TEST(SessionWaiting, TheLogSaysThatTheEndWaitedForTheDirectory) {
  SlowDirectoryBed bed;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    expect_reached(rank, 1, Safety::flushed);
    rank.comm.barrier();
    bed.is_slow = true;
    finalize(rank);
  });
  for (const char* what : {"the last look", "the end of the run's records"})
    EXPECT_TRUE(bed.has_waited(what)) << what;
}

TEST(SessionWaiting, TheLogSaysThatTheEndWaitedForTheStepsOfACopyThatIsLeft) {
  SlowDirectoryBed bed;
  bed.settings.async_bytes_per_s = 100;
  bed.settings.flush_at_end = FlushAtEnd::leave;
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    bed.is_slow = true;
    finalize(rank);
  });
  EXPECT_TRUE(bed.has_waited("ckpt.1"));
}

}  // namespace
}  // namespace cairn
