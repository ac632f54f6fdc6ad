#include "transfer/urgent_help.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <future>
#include <thread>

#include "files/clock.hpp"
#include "transfer/io_threads.hpp"

namespace cairn {
namespace {

/// Pieces of work by an idle thread that is stuck in the first one.
class StuckCopy {
 public:
  explicit StuckCopy(UrgentHelp& help, std::size_t fails_at = 1000)
      : fails_at_(fails_at), idle_([&help, this] {
          done_ = static_cast<bool>(IoThreads{help, 1}.each(10, [this](std::size_t piece) {
            if (piece == 0) go_on_.get_future().wait();
            ++pieces_;
            return piece == fails_at_ ? Status(fail(Code::io, "injected")) : Status{};
          }));
        }) {}
  void go_on() { go_on_.set_value(); }
  bool end() {
    idle_.join();
    return done_;
  }
  int pieces() const { return pieces_; }

 private:
  const std::size_t fails_at_;
  std::promise<void> go_on_;
  std::atomic<int> pieces_ = 0;
  std::atomic<bool> done_ = false;
  std::thread idle_;
};

void sleep_for_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST(UrgentHelp, WorkThatIsUrgentDoesNotWaitForAnIdleThread) {
  const auto clock = make_system_clock();
  const auto background = make_background_thread();
  Pace pace(*clock, 0);
  UrgentHelp help(*background, *clock, pace);
  help.begin();
  StuckCopy copy(help);
  sleep_for_ms(150);
  EXPECT_EQ(copy.pieces(), 0) << "nothing is urgent yet";
  pace.be_done_by(clock->steady_us());
  while (copy.pieces() < 9) sleep_for_ms(1);
  copy.go_on();
  EXPECT_TRUE(copy.end());
  EXPECT_EQ(copy.pieces(), 10);
}

TEST(UrgentHelp, WorkIsUrgentWhileACallWaitsForIt) {
  const auto clock = make_system_clock();
  Pace pace(*clock, 0);
  EXPECT_FALSE(pace.is_urgent());
  {
    const Pace::Lifted lifted(pace);
    EXPECT_TRUE(pace.is_urgent());
  }
  EXPECT_FALSE(pace.is_urgent());
  pace.be_done_by(clock->steady_us() + 3'600'000'000);
  EXPECT_FALSE(pace.is_urgent());
  pace.stop();
  EXPECT_TRUE(pace.is_urgent());
}

TEST(UrgentHelp, AnErrorOfTheHelperIsOneOfTheWork) {
  const auto clock = make_system_clock();
  const auto background = make_background_thread();
  Pace pace(*clock, 0);
  UrgentHelp help(*background, *clock, pace);
  help.begin();
  pace.be_done_by(0);
  StuckCopy copy(help, 2);
  while (copy.pieces() < 2) sleep_for_ms(1);
  sleep_for_ms(20);
  copy.go_on();
  EXPECT_FALSE(copy.end());
  EXPECT_LE(copy.pieces(), 4) << "after an error none is begun";
}

/// Without a thread.
TEST(UrgentHelp, TheCallerDoesAllWhereNoThreadHelps) {
  const auto clock = make_system_clock();
  const auto background = make_foreground();
  Pace pace(*clock, 0);
  UrgentHelp help(*background, *clock, pace);
  help.begin();
  pace.be_done_by(0);
  int pieces = 0;
  EXPECT_TRUE(IoThreads({help, 1}).each(5, [&](std::size_t) {
    ++pieces;
    return Status{};
  }));
  EXPECT_EQ(pieces, 5);
}

TEST(UrgentHelp, TheThreadThatHelpsHasTheProgramsPriority) {
  const auto background = make_background_thread();
  std::promise<int> working;
  std::promise<int> stepping;
  std::atomic<bool> both[2] = {false, false};
  const auto one = background->keep_working([&]() -> std::int64_t {
    if (!both[0].exchange(true)) working.set_value(::sched_getscheduler(0));
    return 1'000'000;
  });
  const auto other = background->keep_stepping([&]() -> std::int64_t {
    if (!both[1].exchange(true)) stepping.set_value(::sched_getscheduler(0));
    return 1'000'000;
  });
  EXPECT_EQ(working.get_future().get(), ::sched_getscheduler(0));
  EXPECT_EQ(stepping.get_future().get(), SCHED_IDLE);
}

}  // namespace
}  // namespace cairn
