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
        reports_(std::move(reports)) {}

  void post(std::uint64_t bytes, Task task) override { work_.post(bytes, std::move(task)); }
  bool wait(std::chrono::milliseconds at_most) override {
    return !hangs.exchange(false) && work_.wait(at_most);
  }
  void report_awaited(std::chrono::milliseconds /*waited*/) override { reports_(); }

  std::atomic<bool> hangs = false;

 private:
  WorkOfBackground work_;
  const std::function<void()> reports_;
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

}  // namespace
}  // namespace cairn
