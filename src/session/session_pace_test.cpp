// Copies that stand back for the program: its hints, and a share of the time.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "support/safety_bed.hpp"

namespace cairn {
namespace {

class PaceBed : public SafetyBed {
 public:
  PaceBed() {
    hook = [this](int /*rank*/, const FileOperation& operation) -> Status {
      if (stages(operation)) ++staged;
      return {};
    };
  }

  std::atomic<int> staged = 0;  ///< files begun, of all ranks
};

TEST(SessionPace, NothingIsCopiedWhileTheProgramCommunicates) {
  PaceBed bed;
  bed.clock = std::make_unique<MovedClock>();
  bed.run_async([&](JobRank& rank) {
    rank.session->pace().begin_computing();
    rank.session->pace().end_computing();
    rank.comm.barrier();
    rank.expect_written(1);
    sleep_ms(100);
    EXPECT_EQ(bed.staged, 0);
    rank.comm.barrier();
    rank.session->pace().begin_computing();
    while (safety(rank, 1) != Safety::flushed) sleep_ms(1);
    rank.comm.barrier();
    finalize(rank);
  });
  bed.expect_own_files(1);
}

TEST(SessionPace, WithoutHintsCopiesGoOnAtAllTimes) {
  PaceBed bed;
  bed.clock = std::make_unique<MovedClock>();
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    while (safety(rank, 1) != Safety::flushed) sleep_ms(1);
    finalize(rank);
  });
}

/// With MovedClock a second takes a quarter of an hour.
TEST(SessionPace, WhatIsWaitedForIsCopiedAtOnce) {
  using Wait = std::function<void(JobRank&)>;
  const std::vector<Wait> waits = {
      finalize,
      [](JobRank& rank) {
        const auto reached = rank.session->safety().wait("ckpt.1", Safety::flushed, -1);
        EXPECT_TRUE(reached && *reached);
      },
      [](JobRank& rank) { EXPECT_TRUE(rank.session->have_restart()); },
      [](JobRank& rank) { EXPECT_TRUE(rank.session->datasets().drop("none of that name")); },
  };
  for (const Wait& wait : waits) {
    PaceBed bed;
    bed.clock = std::make_unique<MovedClock>();
    bed.settings.async_percent = 0.001;
    bed.run_async([&](JobRank& rank) {
      rank.session->pace().end_computing();
      rank.comm.barrier();
      rank.expect_written(1);
      wait(rank);
      EXPECT_EQ(bed.listed(), (Names{"ckpt.1"}));
    });
  }
}

TEST(SessionPace, DataArriveWithoutANewHint) {
  PaceBed bed;
  bed.run_async([&](JobRank& rank) {
    rank.session->pace().end_computing();
    rank.expect_written(1);
    while (safety(rank, 1) != Safety::flushed) sleep_ms(1);
    rank.comm.barrier();
  });
}

/// A thread that works a hundredth of the time takes a hundred times as long, in some more steps.
TEST(SessionPace, AShareOfTheTimeSlowsCopiesDown) {
  const auto copied_us = [](double percent) {
    PaceBed bed;
    bed.settings.async_percent = percent;
    std::int64_t longest_us = 0;
    bed.run_async([&](JobRank& rank) {
      rank.expect_written(1);
      const std::int64_t from_us = rank.clock.steady_us();
      while (safety(rank, 1) != Safety::flushed) sleep_ms(1);
      rank.comm.barrier();
      if (rank.number() == 0) longest_us = rank.clock.steady_us() - from_us;
      finalize(rank);
    });
    return longest_us;
  };
  // Other programs can only make a copy slower.
  const std::int64_t free_us = std::min({copied_us(0), copied_us(0), copied_us(0)});
  const std::int64_t limited_us = copied_us(1);
  EXPECT_GT(limited_us, 5 * free_us);
}

/// A test lets the time pass, and holds back what is copied of some datasets.
class DeadlineBed : public SafetyBed {
 public:
  explicit DeadlineBed(const std::vector<int>& held = {}) {
    for (const int dataset : held) gates_[dataset];
    auto moved = std::make_unique<MovedClock>();
    time_ = moved.get();
    clock = std::move(moved);
    hook = [this](int /*rank*/, const FileOperation& operation) -> Status {
      for (auto& [dataset, gate] : gates_)
        if (stages(operation) && is_of(dataset, operation)) gate.pass();
      return {};
    };
  }

  /// By all ranks.
  void pass(JobRank& rank, int seconds) {
    rank.comm.barrier();
    if (rank.number() == 0) time_->pass_seconds(seconds);
    rank.comm.barrier();
  }
  void let_go(int dataset) { gates_.at(dataset).open(); }

 private:
  static bool is_of(int dataset, const FileOperation& operation) {
    return operation.path.find(fmt::format("/ckpt.{}/", dataset)) != std::string_view::npos;
  }

  std::map<int, Gate> gates_;
  MovedClock* time_;
};

bool is_urgent(JobRank& rank) { return rank.session->pace().is_urgent(); }

/// Not after so many seconds, but after two more.
void expect_late_soon_after(DeadlineBed& bed, JobRank& rank, int seconds) {
  bed.pass(rank, seconds);
  EXPECT_FALSE(is_urgent(rank));
  bed.pass(rank, 2);
  EXPECT_TRUE(is_urgent(rank));
}

void expect_copied(JobRank& rank, int dataset) {
  EXPECT_TRUE(rank.session->datasets().drop("none of that name")) << "waits until nothing is left";
  EXPECT_EQ(safety(rank, dataset), Safety::flushed);
}

TEST(SessionPace, ACopyIsUrgentAfterHalfOfTheTimeBetweenTwo) {
  DeadlineBed bed({2});
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    expect_copied(rank, 1);
    bed.pass(rank, 100);
    rank.expect_written(2);
    expect_late_soon_after(bed, rank, 49);
    rank.comm.barrier();
    bed.let_go(2);
    finalize(rank);
  });
}

TEST(SessionPace, AnOutputJustBeforeACheckpointDoesNotHurryIt) {
  DeadlineBed bed({4});
  bed.run_async([&](JobRank& rank) {
    for (const int checkpoint : {1, 2}) {
      rank.expect_written(checkpoint);
      expect_copied(rank, checkpoint);
      bed.pass(rank, checkpoint == 1 ? 60 : 99);
    }
    rank.expect_written(3, flag_output);
    expect_copied(rank, 3);
    bed.pass(rank, 1);
    rank.expect_written(4);
    expect_late_soon_after(bed, rank, 49);
    rank.comm.barrier();
    bed.let_go(4);
    finalize(rank);
  });
}

TEST(SessionPace, TwoOutputsInARowHurryNothing) {
  DeadlineBed bed({3, 4});
  bed.run_async([&](JobRank& rank) {
    for (const int output : {1, 2}) {
      rank.expect_written(output, flag_output);
      expect_copied(rank, output);
      bed.pass(rank, output == 1 ? 1 : 99);
    }
    rank.expect_written(3, flag_output);
    bed.pass(rank, 1);
    rank.expect_written(4, flag_output);
    expect_late_soon_after(bed, rank, 47);
    rank.comm.barrier();
    bed.let_go(3);
    bed.let_go(4);
    finalize(rank);
  });
}

/// Nor does its copy say how often this run makes checkpoints.
TEST(SessionPace, WhatAnEarlierRunLeftIsNotUrgentAtOnce) {
  DeadlineBed bed({1, 2});
  bed.settings.flush_interval = 1000;
  bed.run_async([](JobRank& rank) { rank.expect_written(1); });
  bed.settings.flush_interval = 1;
  bed.run_async([&](JobRank& rank) {
    expect_late_soon_after(bed, rank, 29);
    rank.comm.barrier();
    bed.let_go(1);
    expect_copied(rank, 1);
    rank.expect_written(2);
    expect_late_soon_after(bed, rank, 29);
    rank.comm.barrier();
    bed.let_go(2);
    finalize(rank);
  });
}

/// The output is late after 30 s, the checkpoint after 50 s. No call sees that the output is there.
TEST(SessionPace, TheEarliestDeadlineOfWhatIsUnderWayHolds) {
  DeadlineBed bed({2, 3});
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    expect_copied(rank, 1);
    bed.pass(rank, 100);
    rank.expect_written(2, flag_output);
    rank.expect_written(3);
    expect_late_soon_after(bed, rank, 29);
    rank.comm.barrier();
    bed.let_go(2);
    for (int ms = 0; ms < 20'000 && is_urgent(rank); ++ms) sleep_ms(1);
    EXPECT_FALSE(is_urgent(rank)) << "the output is there";
    expect_late_soon_after(bed, rank, 18);
    rank.comm.barrier();
    bed.let_go(3);
    finalize(rank);
  });
}

/// The second checkpoint would be late after a second. The third takes its place.
TEST(SessionPace, WhatIsWithdrawnHurriesNothing) {
  DeadlineBed bed({1});
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    bed.pass(rank, 2);
    rank.expect_written(2);
    EXPECT_FALSE(is_urgent(rank));
    bed.pass(rank, 18);
    EXPECT_TRUE(is_urgent(rank));
    rank.expect_written(3);
    EXPECT_FALSE(is_urgent(rank));
    rank.comm.barrier();
    bed.let_go(1);
    finalize(rank);
  });
  EXPECT_FALSE(bed.is_listed(2));
}

class PassingBackground : public Background {
 public:
  void post(std::uint64_t bytes, std::function<void()> task) override {
    real_->post(bytes, std::move(task));
  }
  void wait() override { real_->wait(); }
  std::unique_ptr<Repeated> repeat(std::int64_t period_us, std::function<void()> task) override {
    return real_->repeat(period_us, std::move(task));
  }
  std::unique_ptr<Repeated> keep_stepping(std::function<std::int64_t()> step) override {
    return real_->keep_stepping(std::move(step));
  }
  std::unique_ptr<Repeated> keep_working(std::function<std::int64_t()> step) override {
    return real_->keep_working(std::move(step));
  }
  void in_parallel(int threads, const std::function<void()>& work) override {
    real_->in_parallel(threads, work);
  }

 private:
  std::unique_ptr<Background> real_ = make_background_thread();
};

/// Its threads of idle priority get no core at all.
class BusyBackground final : public PassingBackground {
 public:
  std::unique_ptr<Repeated> keep_stepping(std::function<std::int64_t()> /*step*/) override {
    return std::make_unique<Repeated>();
  }
};

/// Knows its threads of idle priority.
class KnowingBackground final : public PassingBackground {
 public:
  std::unique_ptr<Repeated> keep_stepping(std::function<std::int64_t()> step) override {
    return PassingBackground::keep_stepping([this, step = std::move(step)] {
      {
        const std::scoped_lock lock(mutex_);
        idle_.insert(std::this_thread::get_id());
      }
      return step();
    });
  }
  bool is_in_idle_thread() {
    const std::scoped_lock lock(mutex_);
    return idle_.count(std::this_thread::get_id()) > 0;
  }

 private:
  std::mutex mutex_;
  std::set<std::thread::id> idle_;
};

TEST(SessionPace, WithoutAnIdleCoreCopiesArriveWhenTheyAreLate) {
  DeadlineBed bed;
  EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
    rank.background = std::make_unique<BusyBackground>();
    ASSERT_TRUE(rank.init());
    rank.expect_written(1);
    sleep_ms(200);
    EXPECT_NE(safety(rank, 1), Safety::flushed);
    bed.pass(rank, 31);
    for (int ms = 0; ms < 20'000 && safety(rank, 1) != Safety::flushed; ++ms) sleep_ms(1);
    EXPECT_EQ(safety(rank, 1), Safety::flushed);
    rank.comm.barrier();
    finalize(rank);
  }));
}

/// A thread of idle priority fails as long as no other one copies, and hangs from then on.
TEST(SessionPace, ACallThatWaitsDoesNotWaitForAThreadOfIdlePriority) {
  PaceBed bed;
  Gate gate;
  std::array<std::atomic<bool>, 8> is_urgent{};
  Rescue rescue(gate, 10'000);
  EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
    auto background = std::make_unique<KnowingBackground>();
    rank.hook = [&, number = static_cast<std::size_t>(rank.number()),
                 threads = background.get()](const FileOperation& operation) -> Status {
      const bool copies = operation.path.starts_with(bed.settings.prefix) &&
                          operation.path.find("/dataset.") != std::string::npos;
      if (!copies) return {};
      if (!threads->is_in_idle_thread()) {
        is_urgent[number] = true;
        return {};
      }
      if (!is_urgent[number]) return fail(Code::io, "injected");
      gate.pass();
      return {};
    };
    rank.background = std::move(background);
    ASSERT_TRUE(rank.init());
    rank.expect_written(1);
    finalize(rank);
    EXPECT_TRUE(is_urgent[static_cast<std::size_t>(rank.number())]);
  }));
  EXPECT_TRUE(rescue.end()) << "the call waited for a thread of idle priority";
  EXPECT_TRUE(bed.arrived_by_itself(1)) << bed.log_text();
}

}  // namespace
}  // namespace cairn
