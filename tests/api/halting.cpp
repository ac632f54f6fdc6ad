// A run that is halted while it runs: test_halt.py calls `cairn halt` meanwhile.
#include <chrono>
#include <fstream>
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
void until_halted(Verdict& verdict) {
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

/// A checkpoint that changes before it is protected fails the Complete of the next one. The run
/// ends there all the same: SCR_HALT_EXIT=1.
void ended_after_late_failure(Verdict& verdict) {
  constexpr std::size_t bytes = 32 << 20;  // protecting that many takes longer than changing them
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  announce("running");
  char path[SCR_MAX_FILENAME];
  CHECK_CODE(SCR_SUCCESS, SCR_Start_output("changed", SCR_FLAG_CHECKPOINT));
  CHECK_CODE(SCR_SUCCESS, SCR_Route_file(own("changed").c_str(), path));
  std::ofstream(path) << std::string(bytes, 'x');
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_output(1));
  if (rank_of_this() == 1) std::ofstream(path) << "less";
  CHECK(make_checkpoint("last"));
  CHECK(!"reached");
}
