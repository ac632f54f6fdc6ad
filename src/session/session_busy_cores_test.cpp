// Protection behind the program where no core is idle: it waits for its share of the deadline, or
// until the program waits for it.
#include <atomic>
#include <thread>

#include "support/behind_bed.hpp"

namespace cairn {
namespace {

/// Stands still but for what a test adds.
class SetClock final : public Clock {
 public:
  std::int64_t now_us() override { return now; }
  std::int64_t steady_us() override { return now; }
  void sleep_us(std::int64_t us) override { system_->sleep_us(us); }
  std::uint64_t random() override { return system_->random(); }

  static constexpr std::int64_t begin_us = std::int64_t{1} << 50;
  std::atomic<std::int64_t> now = begin_us;

 private:
  const std::unique_ptr<Clock> system_ = make_system_clock();
};

/// Each piece of work waits until it is urgent. Meanwhile time passes in steps; with no steps it
/// passes never, so that only the program can make it urgent.
class NoIdleCore final : public IdleCores {
 public:
  NoIdleCore(SetClock& clock, std::int64_t step_us) : clock_(clock), step_us_(step_us) {}
  NoIdleCore(const NoIdleCore&) = delete;
  NoIdleCore& operator=(const NoIdleCore&) = delete;
  void give_way(const std::function<bool()>& is_urgent) override {
    constexpr int most_looks = 20'000;
    for (int i = 0; !is_urgent() && !waits_in_vain_; ++i) {
      if (i == most_looks) {
        waits_in_vain_ = true;
        FAIL() << "nothing makes it urgent";
      }
      clock_.now += step_us_;
      if (step_us_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void give_back() override { is_given_back_ = true; }
  ~NoIdleCore() override { EXPECT_TRUE(is_given_back_) << "after the last piece"; }

 private:
  SetClock& clock_;
  const std::int64_t step_us_;
  bool waits_in_vain_ = false;
  bool is_given_back_ = false;
};

class WorkOnBusyCores final : public WorkBehind {
 public:
  WorkOnBusyCores(Background& background, Communicator& comm, SetClock& clock, std::int64_t step_us)
      : work_(background, comm), cores_(std::make_shared<NoIdleCore>(clock, step_us)) {}

  void post(std::uint64_t bytes, Task task) override { work_.post(bytes, std::move(task)); }
  bool wait(std::chrono::milliseconds at_most) override { return work_.wait(at_most); }
  std::shared_ptr<IdleCores> idle_cores() override { return cores_; }

 private:
  WorkOfBackground work_;
  const std::shared_ptr<IdleCores> cores_;
};

/// The time between two datasets, and half of it.
constexpr std::int64_t interval_us = 8'000'000;
constexpr std::int64_t deadline_us = interval_us / 2;

void let_pass(JobRank& rank, SetClock& clock, std::int64_t us) {
  rank.comm.barrier();
  if (rank.number() == 0) clock.now += us;
  rank.comm.barrier();
}

/// Dataset 1 is protected, much later an output is made and protected at once, and dataset 2 is
/// written then. The commit of one rank takes `commit_us`.
void write_on_busy_cores(const std::function<void(JobRank&, SetClock&)>& then,
                         std::int64_t step_us = 0, std::int64_t commit_us = 0) {
  const auto bed = behind_bed();
  bed->settings.block_bytes = 64;  // many pieces
  bed->settings.flush = false;
  CheckpointSettings at_once = bed->settings.checkpoints[0];
  at_once.id = 1;
  at_once.output = true;
  at_once.behind = false;
  bed->settings.checkpoints.push_back(at_once);
  auto its_clock = std::make_unique<SetClock>();
  SetClock& clock = *its_clock;
  bed->clock = std::move(its_clock);
  bed->run(four_nodes(), [&](JobRank& rank) {
    rank.background = make_background_thread();
    Held held(rank);  // so that the thread is there, also for little
    held.release();
    rank.behind = std::make_unique<WorkOnBusyCores>(
        *rank.background, *std::exchange(rank.second_comm, nullptr), clock, step_us);
    ASSERT_TRUE(rank.init());
    rank.expect_written(1);
    ASSERT_TRUE(rank.session->have_restart()) << "the first one is protected at once";
    let_pass(rank, clock, 10 * interval_us);
    rank.expect_written(9, flag_output);
    let_pass(rank, clock, interval_us);
    ASSERT_TRUE(rank.session->start_output("ckpt.2", flag_checkpoint));
    Held again(rank);
    ASSERT_TRUE(rank.session->complete_output(rank.write_files(2).has_value()));
    if (rank.number() == 5)
      rank.hook = [&](const FileOperation& operation) -> Status {
        const bool commits = operation.name == "rename" && operation.to.ends_with("/record");
        if (commits) clock.now += commit_us;
        return {};
      };
    again.release();
    then(rank, clock);
  });
  EXPECT_EQ(bed->restart(four_nodes()), 2) << bed->log_text();
}

/// With all that comes after the last read: here it takes a tenth of the time.
TEST(SessionBusyCores, ADatasetIsProtectedByItsDeadline) {
  constexpr std::int64_t step_us = 1'000;
  const auto is_there_in_time = [](JobRank& rank, SetClock& clock) {
    for (int i = 0; i < 20'000 && rank.session->safety().of("ckpt.2") == Safety::written; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::protected_);
    rank.comm.barrier();
    const std::int64_t took_us = clock.now - SetClock::begin_us - 11 * interval_us;
    EXPECT_LE(took_us, deadline_us);
    EXPECT_GT(took_us, deadline_us * 3 / 4) << "it went before the program";
  };
  write_on_busy_cores(is_there_in_time, step_us, deadline_us / 10);
}

TEST(SessionBusyCores, ALookDoesNotHurryTheWork) {
  write_on_busy_cores([](JobRank& rank, SetClock&) {
    const auto is_protected = rank.session->safety().wait("ckpt.2", Safety::protected_, 0);
    ASSERT_TRUE(is_protected) << is_protected.error().text;
    EXPECT_FALSE(*is_protected);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::written);
    rank.comm.barrier();
    EXPECT_TRUE(rank.session->have_restart());
  });
}

TEST(SessionBusyCores, ACallThatWaitsHurriesTheWork) {
  write_on_busy_cores([](JobRank& rank, SetClock&) {
    ASSERT_TRUE(rank.session->have_restart());
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::protected_);
  });
}

TEST(SessionBusyCores, AnEndWithoutFinalizeHurriesTheWork) {
  write_on_busy_cores([](JobRank& rank, SetClock&) {
    rank.session->safety().protect_at_end();
    EXPECT_EQ(rank.session->safety().of("ckpt.2"), Safety::protected_);
  });
}

}  // namespace
}  // namespace cairn
