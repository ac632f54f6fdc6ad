// A run that is told to stop while it runs: test_halt.py calls `cairn halt` meanwhile.
#include <chrono>
#include <thread>

#include "scenario.hpp"

namespace {

// Two minutes: longer than another job waits in vain for the prefix directory of this one.
constexpr int most_steps = 12000;

void work() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

/// A line of rank 0's, so that the test knows how far it is.
void announce(const std::string& what) {
  if (rank_of_this() == 0) say(what);
}

bool asked(int (*question)(int*)) {
  int flag = 0;
  return question(&flag) == SCR_SUCCESS && flag != 0;
}

}  // namespace

/// Asks whether to stop after each step, and makes a checkpoint where one is due.
void until_told(Verdict& verdict) {
  const int begun = SCR_Init();
  CHECK_CODE(SCR_SUCCESS, begun);
  if (begun != SCR_SUCCESS) return;
  announce("running");
  int step = 0;
  int checkpoints = 0;
  for (; step < most_steps; ++step) {
    work();
    if (asked(SCR_Need_checkpoint)) {
      CHECK(make_checkpoint("ckpt." + std::to_string(++checkpoints)));
    }
    if (asked(SCR_Should_exit)) break;
  }
  CHECK(step < most_steps);
  announce("stopped after " + std::to_string(checkpoints) + " checkpoints");
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}

/// Never asks whether to stop: only SCR_HALT_EXIT=1 can end it.
void until_ended(Verdict& verdict) {
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  announce("running");
  for (int step = 0; step < most_steps; ++step) {
    work();
    if (!asked(SCR_Need_checkpoint)) continue;
    announce("checkpoint");
    CHECK(make_checkpoint("last"));
  }
  CHECK(!"reached");
}
