// No copy is under way, and the prefix directory does not answer: the program looks there itself
// only after a thread of each rank has had an answer.
#include "support/safety_bed.hpp"

namespace cairn {
namespace {

class SilentBed : public AsyncBed {
 public:
  SilentBed() {
    clock = std::make_unique<SkewedClock>(40);
    hook = [this](int rank, const FileOperation& operation) -> Status {
      const bool is_silent_here = is_silent && (silent_rank < 0 || rank == silent_rank);
      if (!operation.path.starts_with(settings.prefix)) return {};
      if (is_away) return fail(Code::io, "injected: cannot {} {}", operation.name, operation.path);
      const bool is_owner = operation.path.ends_with("/.cairn/owner");
      if (is_silent_here && is_owner) ++looks;
      if (is_silent_here) gate.pass();
      return {};
    };
  }

  /// The program waits for its copies of all checkpoints but every second one.
  void copy_every_second_behind() {
    settings.flush_interval = 1;
    settings.flush_async = false;
    CheckpointSettings& second = settings.checkpoints.emplace_back(settings.checkpoints[0]);
    second.id = 1;
    second.interval = 2;
    second.flush_async = true;
  }
  void fall_silent(JobRank& rank) {
    rank.comm.barrier();
    is_away = false;
    is_silent = true;
    rank.comm.barrier();
  }
  /// By all ranks: no call has waited for the directory, which answers from now on.
  void answer(JobRank& rank, Rescue& rescue) {
    rank.comm.barrier();
    if (rank.number() == 0) {
      EXPECT_TRUE(rescue.end()) << "a call waited for the directory";
      is_silent = false;
      gate.open();
    }
    rank.comm.barrier();
  }

  Gate gate;
  int silent_rank = -1;  ///< all
  std::atomic<bool> is_away = false;
  std::atomic<bool> is_silent = false;
  std::atomic<int> looks = 0;
};

TEST(SessionSilentPrefix, StartDoesNotWaitForADirectoryThatCouldNotBeReachedAtInit) {
  SilentBed bed;
  bed.is_away = true;
  Rescue rescue(bed.gate, 20'000);
  bed.run_async([&](JobRank& rank) {
    bed.fall_silent(rank);
    for (const int dataset : {1, 2, 3}) (void)rank.write(dataset);
    bed.answer(rank, rescue);
    rank.expect_written(4, flag_checkpoint | flag_output);
    finalize(rank);
  });
  EXPECT_EQ(bed.looks, 8) << "no call waits once more, as long as a look waits";
  EXPECT_TRUE(bed.is_listed(4));
}

TEST(SessionSilentPrefix, ACallThatNeedsTheDirectoryFailsIfItDoesNotAnswer) {
  SilentBed bed;
  Rescue rescue(bed.gate, 20'000);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    bed.fall_silent(rank);
    const auto expect_silence = [](const Status& status) {
      ASSERT_FALSE(status);
      EXPECT_NE(status.error().text.find("does not answer"), std::string::npos)
          << status.error().text;
    };
    auto& datasets = rank.session->datasets();
    expect_silence(rank.session->have_restart().map([](const auto&) {}));
    expect_silence(rank.session->start_restart().map([](const auto&) {}));
    expect_silence(datasets.current("ckpt.1"));
    expect_silence(datasets.drop("ckpt.1"));
    expect_silence(datasets.remove("ckpt.1"));
    EXPECT_EQ(bed.looks, 8) << "no call waits once more, as long as a look waits";
    bed.answer(rank, rescue);
    wait_for_answer(rank);
    EXPECT_TRUE(datasets.remove("ckpt.1"));
    finalize(rank);
  });
}

TEST(SessionSilentPrefix, ACopyOfTheProgramItselfDoesNotBeginIfTheDirectoryDoesNotAnswer) {
  SilentBed bed;
  bed.copy_every_second_behind();
  Rescue rescue(bed.gate, 20'000);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2);
    expect_reached(rank, 2, Safety::flushed, -1);
    EXPECT_TRUE(rank.session->have_restart());  // nothing is under way
    bed.fall_silent(rank);
    rank.expect_not_copied(3);
    bed.answer(rank, rescue);
    wait_for_answer(rank);
    rank.expect_written(5);
    finalize(rank);
  });
  EXPECT_EQ(bed.listed(), (Names{"ckpt.5", "ckpt.2", "ckpt.1"}));
}

/// The last look is one of rank 0 alone.
TEST(SessionSilentPrefix, FinalizeDoesNotWaitForADirectoryThatIsSilentOnOneNode) {
  SilentBed bed;
  bed.copy_every_second_behind();
  bed.silent_rank = 1;
  Rescue rescue(bed.gate, 20'000);
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    rank.expect_written(2);
    expect_reached(rank, 2, Safety::flushed, -1);
    EXPECT_TRUE(rank.session->have_restart());  // nothing is under way
    bed.fall_silent(rank);
    rank.expect_not_copied(3);
    rank.expect_not_all_copied();
    bed.answer(rank, rescue);
  });
}

}  // namespace
}  // namespace cairn
