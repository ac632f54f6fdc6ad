// cairn.h: what a dataset survives, and waiting for more.
#include <cairn.h>

#include "scenario.hpp"
#include "support/own_connections.hpp"

namespace {

int state_of(const char* name) {
  int state = -1;
  return Cairn_Dataset_state(name, &state) == SCR_SUCCESS ? state : -1;
}

void wrong_questions(Verdict& verdict) {
  int state = 7;
  const std::string here = "rank " + std::to_string(rank_of_this());
  expect_line(here + "|Cairn_Dataset_state|name is NULL");
  CHECK_CODE(CAIRN_E_BAD_ARGUMENT, Cairn_Dataset_state(nullptr, &state));
  CHECK(state == CAIRN_STATE_NONE);
  expect_line(here + "|Cairn_Dataset_state|state is NULL");
  CHECK_CODE(CAIRN_E_BAD_ARGUMENT, Cairn_Dataset_state("a", nullptr));
  for (const char* name : {static_cast<const char*>(nullptr), ""}) {
    expect_error("Cairn_Wait|NULL or empty");
    CHECK_CODE(CAIRN_E_BAD_ARGUMENT, Cairn_Wait(name, CAIRN_STATE_FLUSHED, 0));
  }
  expect_error("Cairn_Wait|state 5");
  CHECK_CODE(CAIRN_E_BAD_ARGUMENT, Cairn_Wait("a", 5, 0));
  expect_error("rank 2: Cairn_Wait|seconds 2|ranks 0-1, 3: Cairn_Wait|seconds 1");
  CHECK_CODE(CAIRN_E_DIFFERS,
             Cairn_Wait("a", CAIRN_STATE_FLUSHED, rank_of_this() == 2 ? 2.0 : 1.0));
}

}  // namespace

void dataset_states(Verdict& verdict) {
  int state = 7;
  expect_line("Cairn_Dataset_state|state UNINIT|rank " + std::to_string(rank_of_this()));
  CHECK_CODE(CAIRN_E_WRONG_STATE, Cairn_Dataset_state("a", &state));
  CHECK(state == CAIRN_STATE_NONE);
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK(state_of("a") == CAIRN_STATE_NONE);
  wrong_questions(verdict);
  CHECK_CODE(SCR_SUCCESS, SCR_Start_output("a", SCR_FLAG_CHECKPOINT | SCR_FLAG_OUTPUT));
  CHECK(state_of("a") == CAIRN_STATE_WRITING);
  CHECK(route_and_write("a"));
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_output(1));
  CHECK(state_of("a") == CAIRN_STATE_PROTECTED);
  CHECK_CODE(SCR_SUCCESS, Cairn_Wait("a", CAIRN_STATE_PROTECTED, 0));
  CHECK_CODE(CAIRN_TIMEOUT, Cairn_Wait("a", CAIRN_STATE_FLUSHED, 0));
  CHECK_CODE(CAIRN_TIMEOUT, Cairn_Wait("a", CAIRN_STATE_FLUSHED, 0.1));
  CHECK_CODE(SCR_SUCCESS, Cairn_Wait("a", CAIRN_STATE_FLUSHED, 60));
  CHECK(state_of("a") == CAIRN_STATE_FLUSHED);
  expect_error("Cairn_Wait|no dataset b");
  CHECK_CODE(CAIRN_E_NOT_FOUND, Cairn_Wait("b", CAIRN_STATE_WRITTEN, -1));
  CHECK(make_checkpoint("b"));
  expect_error("Cairn_Wait|dataset b is protected|SCR_FLUSH");
  CHECK_CODE(CAIRN_E_BAD_ARGUMENT, Cairn_Wait("b", CAIRN_STATE_FLUSHED, -1));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}

void dataset_states_restarted(Verdict& verdict) {
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK(offered() == "b");
  CHECK(state_of("a") == CAIRN_STATE_FLUSHED);
  CHECK(state_of("b") == CAIRN_STATE_FLUSHED);
  CHECK_CODE(SCR_SUCCESS, SCR_Delete("b"));
  CHECK(state_of("b") == CAIRN_STATE_NONE);
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}

/// With protection behind the program.
void lost_connections(Verdict& verdict) {
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  if (rank_of_this() == 2) end_own_connections();
  CHECK(make_checkpoint("a"));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}
