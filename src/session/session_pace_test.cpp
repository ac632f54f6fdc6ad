// Copies that stand back for the program: its hints, and a share of the time.
#include <algorithm>
#include <array>
#include <set>

#include "support/safety_bed.hpp"

namespace cairn {
namespace {

/// A clock whose hints stay young for a long time.
class SlowClock final : public Clock {
 public:
  std::int64_t now_us() override { return real_->now_us(); }
  std::int64_t steady_us() override { return real_->steady_us() / 1000; }
  void sleep_us(std::int64_t us) override { real_->sleep_us(std::min(us, std::int64_t{1000})); }
  std::uint64_t random() override { return real_->random(); }

 private:
  std::unique_ptr<Clock> real_ = make_system_clock();
};

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
  bed.clock = std::make_unique<SlowClock>();
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
  bed.clock = std::make_unique<SlowClock>();
  bed.run_async([&](JobRank& rank) {
    rank.expect_written(1);
    while (safety(rank, 1) != Safety::flushed) sleep_ms(1);
    finalize(rank);
  });
}

/// With SlowClock a second takes a quarter of an hour.
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
    bed.clock = std::make_unique<SlowClock>();
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

TEST(SessionPace, WithoutAnIdleCoreCopiesArriveInHalfOfTheTimeBetweenTwo) {
  PaceBed bed;
  EXPECT_TRUE(bed.run(four_nodes(), [&](JobRank& rank) {
    rank.background = std::make_unique<BusyBackground>();
    ASSERT_TRUE(rank.init());
    rank.expect_written(1);
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
