// Every call in every state in which it is not legal, and calls that differ between ranks.
#include <cairn.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>

#include "scenario.hpp"

namespace {

struct Call {
  const char* name;
  const char* legal;  ///< states, one letter each: U I R C O
  std::function<int()> make;
};

int flag = 0;
char name[SCR_MAX_FILENAME];

const std::vector<Call> calls = {
    {"SCR_Init", "U", [] { return SCR_Init(); }},
    {"SCR_Finalize", "I", [] { return SCR_Finalize(); }},
    {"SCR_Should_exit", "I", [] { return SCR_Should_exit(&flag); }},
    {"SCR_Have_restart", "I", [] { return SCR_Have_restart(&flag, name); }},
    {"SCR_Start_restart", "I", [] { return SCR_Start_restart(name); }},
    {"SCR_Complete_restart", "R", [] { return SCR_Complete_restart(1); }},
    {"SCR_Current", "I", [] { return SCR_Current("none"); }},
    {"SCR_Need_checkpoint", "I", [] { return SCR_Need_checkpoint(&flag); }},
    {"SCR_Start_checkpoint", "I", [] { return SCR_Start_checkpoint(); }},
    {"SCR_Complete_checkpoint", "C", [] { return SCR_Complete_checkpoint(1); }},
    {"SCR_Start_output", "I", [] { return SCR_Start_output("none", SCR_FLAG_CHECKPOINT); }},
    {"SCR_Complete_output", "O", [] { return SCR_Complete_output(1); }},
    {"SCR_Drop", "I", [] { return SCR_Drop("none"); }},
    {"SCR_Delete", "I", [] { return SCR_Delete("none"); }},
    {"Cairn_Wait", "I", [] { return Cairn_Wait("none", CAIRN_STATE_WRITTEN, 0); }},
    {"SCR_Start_checkpoint", "I", [] { return SCR_Start("none"); }},
    {"SCR_Complete_checkpoint", "C", [] { return SCR_Complete("none", 1); }},
};

/// Makes all calls that are not legal in `state`: each fails alike, and says so once.
void try_wrong_calls(Verdict& verdict, const std::string& state) {
  for (const Call& call : calls) {
    if (std::strchr(call.legal, state[0]) != nullptr) continue;
    expect_error(std::string(call.name) + "|state " + state);
    flag = 7;
    verdict.check(call.make() == CAIRN_E_WRONG_STATE, call.name + (" in " + state), __LINE__);
    if (flag != 7) CHECK(flag == 0);
  }
  if (state == "UNINIT") {
    expect_line("SCR_Route_file|state UNINIT|rank " + std::to_string(rank_of_this()));
    CHECK_CODE(CAIRN_E_WRONG_STATE, SCR_Route_file("a", name));
    return;
  }
  expect_error("SCR_Config|state " + state);
  CHECK(SCR_Config("SCR_CHECKPOINT_INTERVAL=5") == nullptr);
  CHECK(std::string(SCR_Config("SCR_CHECKPOINT_INTERVAL")) == "0");
}

/// Handlers are compared by their bytes: what was not changed is the same in all of them.
std::string handlers() {
  std::string all;
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &action) != 0) continue;
    all += std::to_string(signal) + " " + std::to_string(action.sa_flags) + " " +
           std::to_string(reinterpret_cast<std::size_t>(action.sa_handler)) + "\n";
  }
  return all;
}

void order_in_restart(Verdict& verdict) {
  CHECK_CODE(SCR_SUCCESS, SCR_Start_restart(name));
  try_wrong_calls(verdict, "RESTART");
  CHECK(route_and_read(name));
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_restart(1));
  if (rank_of_this() == 0) say("restarted from " + std::string(name));
}

}  // namespace

void wrong_order(Verdict& verdict) {
  const std::string before = handlers();
  const std::string folder = std::filesystem::current_path().string();
  CHECK(std::string(SCR_Get_version()) == SCR_VERSION);
  try_wrong_calls(verdict, "UNINIT");
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK(handlers() == before);
  try_wrong_calls(verdict, "IDLE");
  CHECK_CODE(SCR_SUCCESS, SCR_Have_restart(&flag, name));
  if (flag != 0) order_in_restart(verdict);
  CHECK_CODE(SCR_SUCCESS, SCR_Start_checkpoint());
  try_wrong_calls(verdict, "CHECKPOINT");
  CHECK(route_and_write("plain"));
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_checkpoint(1));
  CHECK_CODE(SCR_SUCCESS, SCR_Start_output("named", SCR_FLAG_CHECKPOINT));
  CHECK(route_and_write("named"));
  try_wrong_calls(verdict, "OUTPUT");
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_output(1));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
  try_wrong_calls(verdict, "UNINIT");
  CHECK(handlers() == before);
  CHECK(std::filesystem::current_path().string() == folder);
}

void unequal_calls(Verdict& verdict) {
  const bool odd = rank_of_this() == 2;
  const std::string outside = "rank 2: SCR_|state UNINIT|ranks 0-1, 3: SCR_|state UNINIT";
  expect_error(outside);
  CHECK_CODE(CAIRN_E_DIFFERS, odd ? SCR_Init() : SCR_Start_checkpoint());
  expect_error(outside);
  CHECK_CODE(CAIRN_E_DIFFERS, odd ? SCR_Finalize() : SCR_Init());
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  const std::string idle = "rank 2: SCR_|state IDLE|ranks 0-1, 3: SCR_|state IDLE";
  expect_error(idle);
  CHECK_CODE(CAIRN_E_DIFFERS, odd ? SCR_Init() : SCR_Should_exit(&flag));
  expect_error(idle);
  CHECK_CODE(CAIRN_E_DIFFERS, SCR_Start_output(odd ? "this" : "that", SCR_FLAG_CHECKPOINT));
  expect_error(idle);
  CHECK_CODE(CAIRN_E_DIFFERS, SCR_Start_output("a", odd ? SCR_FLAG_OUTPUT : SCR_FLAG_CHECKPOINT));
  expect_error(idle);
  CHECK_CODE(CAIRN_E_DIFFERS, odd ? SCR_Start_checkpoint() : SCR_Should_exit(&flag));
  expect_error(idle);
  CHECK_CODE(CAIRN_E_DIFFERS, odd ? SCR_Finalize() : SCR_Have_restart(&flag, nullptr));
  expect_error(idle);
  CHECK_CODE(CAIRN_E_DIFFERS, SCR_Current(odd ? nullptr : "a"));
  expect_error(idle);
  CHECK_CODE(CAIRN_E_DIFFERS, SCR_Drop(odd ? "b" : "a"));
  expect_error(idle);
  CHECK_CODE(CAIRN_E_DIFFERS, SCR_Delete(odd ? "b" : "a"));
  CHECK_CODE(SCR_SUCCESS, SCR_Start_output("a", SCR_FLAG_CHECKPOINT));
  expect_error("rank 2: SCR_Complete_output|ranks 0-1, 3: SCR_Complete_checkpoint");
  CHECK_CODE(CAIRN_E_DIFFERS, odd ? SCR_Complete_output(1) : SCR_Complete_checkpoint(1));
  CHECK(route_and_write("a"));
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_output(1));
  CHECK(make_checkpoint("b"));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
  expect_error(outside);
  CHECK_CODE(CAIRN_E_DIFFERS, odd ? SCR_Finalize() : SCR_Init());
}
