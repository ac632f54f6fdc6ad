// What the calls of a program do while a checkpoint is written and not protected.
#include <atomic>
#include <mutex>
#include <thread>

#include "support/behind_bed.hpp"

namespace cairn {
namespace {

/// One rank whose thread is held back while dataset 2 is written and not protected.
class ExposedRank {
 public:
  explicit ExposedRank(JobRank& rank) : rank_(rank) {
    rank_.background = make_background_thread();
    EXPECT_TRUE(rank_.init());
    rank_.expect_written(1);
    EXPECT_TRUE(rank_.session->have_restart()) << "waits";
    EXPECT_TRUE(rank_.session->start_output("ckpt.2", flag_checkpoint));
    held_.emplace(rank_);
    EXPECT_TRUE(rank_.session->complete_output(rank_.write_files(2).has_value()));
  }
  ~ExposedRank() {
    if (later_.joinable()) later_.join();
  }
  ExposedRank(const ExposedRank&) = delete;
  ExposedRank& operator=(const ExposedRank&) = delete;

  void release() {
    is_released_ = true;
    held_->release();
  }
  void release_later() {
    later_ = std::thread([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      release();
    });
  }
  bool is_released() const { return is_released_; }

 private:
  JobRank& rank_;
  std::optional<Held> held_;
  std::atomic<bool> is_released_ = false;
  std::thread later_;
};

/// A thread that begins nothing before the program waits for all of it, or the test says so.
class BegunByAWait final : public Background {
 public:
  void post(std::uint64_t /*bytes*/, std::function<void()> task) override {
    gates_.emplace_back();
    constexpr std::uint64_t worth_a_thread = 1 << 20;
    thread_->post(worth_a_thread,
                  [gate = gates_.back().get_future().share(), task = std::move(task)] {
                    gate.wait();
                    task();
                  });
  }
  void begin() {
    for (std::promise<void>& gate : std::exchange(gates_, {})) gate.set_value();
  }
  void wait() override {
    begin();
    thread_->wait();
  }
  std::unique_ptr<Repeated> repeat(std::int64_t /*period_us*/,
                                   std::function<void()> /*task*/) override {
    return nullptr;
  }
  void in_parallel(int threads, const std::function<void()>& work) override {
    thread_->in_parallel(threads, work);
  }

 private:
  std::unique_ptr<Background> thread_ = make_background_thread();
  std::vector<std::promise<void>> gates_;
};

/// How often ranks map a file of dataset 1, until `wait` has seen that it is protected.
int count_mappings(const std::function<void(Session&, BegunByAWait&)>& wait) {
  const auto bed = behind_bed();
  std::atomic<int> mappings = 0;
  bed->run(four_nodes(), [&](JobRank& rank) {
    auto thread = std::make_unique<BegunByAWait>();
    BegunByAWait& begun_by_a_wait = *thread;
    rank.background = std::move(thread);
    ASSERT_TRUE(rank.init());
    rank.hook = [&](const FileOperation& operation) -> Status {
      if (operation.name == "view" && operation.path.find("/dataset.1.") != operation.path.npos)
        ++mappings;
      return {};
    };
    rank.expect_written(1);
    wait(*rank.session, begun_by_a_wait);
    EXPECT_EQ(rank.session->safety().of("ckpt.1"), Safety::protected_);
  });
  return mappings;
}

using Call = std::function<void(Session&)>;

/// A call returns only when the dataset is protected on this rank.
void expect_to_wait(const Call& call) {
  const auto bed = behind_bed();
  bed->run(four_nodes(), [&](JobRank& rank) {
    ExposedRank exposed(rank);
    exposed.release_later();
    call(*rank.session);
    EXPECT_TRUE(exposed.is_released());
  });
  EXPECT_EQ(bed->restart(four_nodes()), 2) << bed->log_text();
}

TEST(SessionBehindCalls, StartWaits) {
  expect_to_wait([](Session& session) {
    EXPECT_TRUE(session.start_output("ckpt.3", flag_checkpoint));
    EXPECT_FALSE(session.complete_output(false));
  });
}

/// A program that goes on may cut a file, and a mapping would end it by a SIGBUS.
TEST(SessionBehindCalls, FilesAreMappedOnlyWhileTheProgramWaitsForAllOfTheWork) {
  if (memory_base().empty()) GTEST_SKIP() << "no store of this machine is memory";
  EXPECT_GT(count_mappings([](Session& session, BegunByAWait&) { (void)session.have_restart(); }),
            0);
  EXPECT_EQ(count_mappings([](Session& session, BegunByAWait& work) {
              std::thread later([&work] {
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                work.begin();
              });
              EXPECT_TRUE(session.safety().wait("ckpt.1", Safety::protected_, 60));
              later.join();
            }),
            0)
      << "such a wait may end before the work";
}

TEST(SessionBehindCalls, HaveRestartWaits) {
  expect_to_wait([](Session& session) { EXPECT_TRUE(session.have_restart()); });
}

TEST(SessionBehindCalls, CurrentWaits) {
  expect_to_wait([](Session& session) { EXPECT_TRUE(session.datasets().current("ckpt.2")); });
}

TEST(SessionBehindCalls, DropWaits) {
  expect_to_wait([](Session& session) { (void)session.datasets().drop("another"); });
}

TEST(SessionBehindCalls, DeleteWaits) {
  expect_to_wait([](Session& session) { EXPECT_TRUE(session.datasets().remove("another")); });
}

TEST(SessionBehindCalls, FinalizeWaits) {
  expect_to_wait([](Session& session) { EXPECT_TRUE(session.finalize()); });
}

/// So many seconds have passed, but the next Start would wait.
TEST(SessionBehindCalls, NoCheckpointIsDueBySecondsWhileOneIsNotProtected) {
  const auto bed = behind_bed();
  bed->settings.checkpoint_seconds = 1;
  bed->run(four_nodes(), [&](JobRank& rank) {
    ExposedRank exposed(rank);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    const auto meanwhile = rank.session->schedule().need_checkpoint();
    EXPECT_FALSE(meanwhile.value_or(true));
    EXPECT_FALSE(rank.session->schedule().should_exit().value_or(true)) << "does not wait";
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::written);
    rank.comm.barrier();
    exposed.release();
    rank.background->wait();
    EXPECT_TRUE(rank.session->schedule().need_checkpoint().value_or(false));
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::protected_);
  });
}

TEST(SessionBehindCalls, ACheckpointIsDueByTheIntervalAllTheSame) {
  const auto bed = behind_bed();
  bed->settings.checkpoint_interval = 1;
  bed->run(four_nodes(), [&](JobRank& rank) {
    ExposedRank exposed(rank);
    EXPECT_TRUE(rank.session->schedule().need_checkpoint().value_or(false));
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::written);
    rank.comm.barrier();
    exposed.release();
  });
}

/// The older one is gone by then.
TEST(SessionBehindCalls, WithoutTheOldDatasetANewOneIsProtectedAtOnce) {
  const auto bed = behind_bed();
  bed->settings.keep_old = false;
  bed->run(four_nodes(), [&](JobRank& rank) {
    ExposedRank exposed(rank);
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::protected_);
    rank.comm.barrier();
    exposed.release();
  });
  EXPECT_TRUE(bed->logs("CAIRN_PROTECT=behind has no effect")) << bed->log_text();
}

// --- a rank that hangs ---

/// The first wait is over before the work is done, where there is something that hangs.
class HangingWork final : public WorkBehind {
 public:
  HangingWork(JobRank& rank, std::function<void()> reports)
      : work_(*rank.background, *std::exchange(rank.second_comm, nullptr)),
        reports_(std::move(reports)),
        reports_late_(rank.number() == 0) {}

  void post(std::uint64_t bytes, Task task) override { work_.post(bytes, std::move(task)); }
  bool wait(std::chrono::milliseconds at_most) override {
    return !hangs.exchange(false) && work_.wait(at_most);
  }
  void report_awaited(std::chrono::milliseconds /*waited*/) override { reports_(); }
  void report_late(std::chrono::milliseconds /*waited*/) override {
    if (reports_late_) reports_();
  }

  std::atomic<bool> hangs = false;

 private:
  WorkOfBackground work_;
  const std::function<void()> reports_;
  const bool reports_late_;
};

/// Rank 5 hangs while it removes the older dataset, after the last message, until `call` has led to
/// a report. Returns which ranks have reported.
std::vector<int> reported_by(const Call& call, std::int64_t clock_goes_times = 1) {
  const auto bed = behind_bed();
  bed->clock = std::make_unique<SkewedClock>(clock_goes_times);
  std::promise<void> gate;
  const auto opened = gate.get_future().share();
  std::mutex mutex;
  std::vector<int> reported;
  bed->run(four_nodes(), [&](JobRank& rank) {
    rank.background = make_background_thread();
    auto work = std::make_unique<HangingWork>(rank, [&, number = rank.number()] {
      const std::lock_guard lock(mutex);
      if (reported.empty()) gate.set_value();
      reported.push_back(number);
    });
    std::atomic<bool>& hangs = work->hangs;
    rank.behind = std::move(work);
    ASSERT_TRUE(rank.init());
    rank.expect_written(1);
    ASSERT_TRUE(rank.session->have_restart()) << "waits";
    const std::string older = bed->parts("n2", 1).back();
    ASSERT_TRUE(rank.session->start_output("ckpt.2", flag_checkpoint));
    Held held(rank);  // so that the thread is there, also for little
    ASSERT_TRUE(rank.session->complete_output(rank.write_files(2).has_value()));
    rank.hook = [&, has_record = true](const FileOperation& operation) mutable -> Status {
      if (rank.number() != 5 || !operation.path.starts_with(older)) return {};
      const bool is_record = operation.path.ends_with("/record");
      if (!is_record && !has_record) opened.wait_for(std::chrono::seconds(20));
      has_record = !is_record;
      return {};
    };
    hangs = rank.number() == 5;
    rank.comm.barrier();
    held.release();
    call(*rank.session);
  });
  return reported;
}

TEST(SessionBehindCalls, AStartThatWaitsReportsTheLowestRankThatHangs) {
  EXPECT_EQ(reported_by([](Session& session) { EXPECT_TRUE(session.have_restart()); }),
            std::vector<int>{5});
}

/// The clock goes fast, so another rank may be late before.
TEST(SessionBehindCalls, CairnWaitReportsWhileARankHangs) {
  const auto reported = reported_by(
      [](Session& session) {
        EXPECT_TRUE(session.safety().wait("ckpt.2", Safety::protected_, -1).value_or(false));
      },
      10'000);
  EXPECT_FALSE(reported.empty());
}

/// A thread that is stopped does not return from a sleep before the gate is open. Time begins when
/// it sleeps, and goes fast then.
class StoppingClock final : public Clock {
 public:
  explicit StoppingClock(std::shared_future<void> gate) : gate_(std::move(gate)) {}
  std::int64_t now_us() override { return clock_.now_us(); }
  std::int64_t steady_us() override {
    constexpr std::int64_t zero_us = std::int64_t{1} << 50;
    return begin_us_ == 0 ? zero_us : zero_us + clock_.steady_us() - begin_us_;
  }
  void sleep_us(std::int64_t us) override {
    if (is_stopped) {
      if (begin_us_ == 0) begin_us_ = clock_.steady_us();
      EXPECT_EQ(gate_.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    }
    clock_.sleep_us(us);
  }
  std::uint64_t random() override { return clock_.random(); }

  static inline thread_local bool is_stopped = false;

 private:
  SkewedClock clock_{100};
  const std::shared_future<void> gate_;
  std::atomic<std::int64_t> begin_us_ = 0;
};

/// It answers no message of the program, and its job sends none.
TEST(SessionBehindCalls, CairnWaitReportsWhileARankIsStopped) {
  std::promise<void> gate;
  const std::shared_future<void> opened = gate.get_future().share();
  std::atomic<bool> is_reported = false;
  const auto bed = behind_bed();
  bed->clock = std::make_unique<StoppingClock>(opened);
  bed->run(four_nodes(), [&](JobRank& rank) {
    rank.background = make_background_thread();
    rank.behind = std::make_unique<HangingWork>(rank, [&] {
      if (!is_reported.exchange(true)) gate.set_value();
    });
    ASSERT_TRUE(rank.init());
    ASSERT_TRUE(rank.session->start_output("ckpt.1", flag_checkpoint));
    Held held(rank);  // so that the thread is there, also for little
    ASSERT_TRUE(rank.session->complete_output(rank.write_files(1).has_value()));
    const bool stops = rank.number() == 5;
    if (stops)
      rank.hook = [&](const FileOperation&) -> Status {
        opened.wait_for(std::chrono::seconds(20));
        return {};
      };
    held.release();
    StoppingClock::is_stopped = stops;
    EXPECT_TRUE(rank.session->safety().wait("ckpt.1", Safety::protected_, -1).value_or(false));
    StoppingClock::is_stopped = false;
  });
}

}  // namespace
}  // namespace cairn
