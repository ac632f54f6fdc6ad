// SCR_Config, the library switched off, and the questions when to checkpoint and when to stop.
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "scenario.hpp"

namespace {

/// The answer to a query, or "none".
std::string asked(const char* question) {
  const char* answer = SCR_Config(question);
  const std::string text = answer ? answer : "none";
  std::free(const_cast<char*>(answer));
  return text;
}

int needed() {
  int flag = 7;
  return SCR_Need_checkpoint(&flag) == SCR_SUCCESS ? flag : -1;
}

int stopping() {
  int flag = 7;
  return SCR_Should_exit(&flag) == SCR_SUCCESS ? flag : -1;
}

void sleep_ms(int time_ms) { std::this_thread::sleep_for(std::chrono::milliseconds(time_ms)); }

/// The same moment on all ranks: seconds since 1970 by rank 0's clock.
long now_s() {
  long now = static_cast<long>(std::time(nullptr));
  MPI_Bcast(&now, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  return now;
}

/// One life of the library with these settings, unset again afterwards.
template <class Body>
void with(Verdict& verdict, const std::vector<std::string>& keys_and_values, Body body) {
  for (const std::string& text : keys_and_values) CHECK(SCR_Config(text.c_str()) == nullptr);
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  body();
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
  for (const std::string& text : keys_and_values)
    SCR_Configf("%s=", text.substr(0, text.find('=')).c_str());
}

void before_init(Verdict& verdict) {
  CHECK(asked("SCR_CHECKPOINT_SECONDS") == "none");
  CHECK(SCR_Config("SCR_CHECKPOINT_SECONDS=11") == nullptr);
  CHECK(asked("SCR_CHECKPOINT_SECONDS") == "11");
  CHECK(SCR_Config("SCR_CHECKPOINT_SECONDS=") == nullptr);
  CHECK(asked("SCR_CHECKPOINT_SECONDS") == "none");
  CHECK(SCR_Config("CKPT=0 TYPE=XOR SET_SIZE=2 INTERVAL=1") == nullptr);
  CHECK(SCR_Config("CKPT=1 TYPE=SINGLE INTERVAL=4") == nullptr);
  CHECK(asked("CKPT=0 TYPE") == "XOR" && asked("CKPT=1 INTERVAL") == "4");
  CHECK(SCR_Config("CKPT=1 INTERVAL=") == nullptr && asked("CKPT=1 INTERVAL") == "none");
  CHECK(SCR_Config("CKPT=1 INTERVAL=5") == nullptr);
  CHECK(SCR_Configf("SCR_%s=%d", "CHECKPOINT_INTERVAL", 3) == nullptr);
  CHECK(SCR_Config("SCR_COPY_TYPE=FILE") == nullptr);
  expect_error("SCR_Config|one setting at a time");
  CHECK(SCR_Config("SCR_DEBUG SCR_PREFIX") == nullptr);
  expect_error("SCR_Configf|5000 bytes");
  CHECK(SCR_Configf("%5000d", 1) == nullptr);
  // The environment's word is final.
  CHECK(SCR_Config("SCR_CACHE_SIZE=5") == nullptr && asked("SCR_CACHE_SIZE") == "2");
  CHECK(SCR_Config("SCR_JOB_ID=overridden") == nullptr);
}

}  // namespace

void settings(Verdict& verdict) {
  before_init(verdict);
  const bool odd = rank_of_this() == 3;
  if (odd) SCR_Config("SCR_CHECKPOINT_OVERHEAD=3");
  expect_error("SCR_Init|rank 3: |SCR_CHECKPOINT_OVERHEAD=3|ranks 0-2: ");
  CHECK_CODE(CAIRN_E_DIFFERS, SCR_Init());
  if (odd) SCR_Config("SCR_CHECKPOINT_OVERHEAD=");
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK(asked("SCR_CHECKPOINT_INTERVAL") == "3" && asked("SCR_CACHE_SIZE") == "2");
  CHECK(asked("CKPT=0 TYPE") == "XOR" && asked("CKPT=1 INTERVAL") == "5");
  CHECK(asked("CKPT=0 SET_SIZE") == "2" && asked("SCR_JOB_ID") == "simulated");
  CHECK(asked("SCR_NO_SUCH_KEY") == "none");
  expect_error("SCR_Config|state IDLE");
  CHECK(SCR_Config("SCR_CHECKPOINT_INTERVAL=") == nullptr);
  CHECK(asked("SCR_CHECKPOINT_INTERVAL") == "3");
  CHECK(needed() == 0 && needed() == 0 && needed() == 1);
  CHECK(make_checkpoint("a"));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}

/// With SCR_ENABLE=0, or (API_INIT_ERROR set) with settings that SCR_Init refuses with that code,
/// and API_INIT_WORDS.
void switched_off(Verdict& verdict) {
  const char* error = std::getenv("API_INIT_ERROR");
  if (error) expect_error(std::string("SCR_Init|") + std::getenv("API_INIT_WORDS"));
  verdict.check(SCR_Init() == (error ? std::atoi(error) : CAIRN_E_DISABLED), "SCR_Init", __LINE__);
  int need = 7, exit = 7, have = 7;
  char path[SCR_MAX_FILENAME] = "", name[SCR_MAX_FILENAME] = "untouched";
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Need_checkpoint(&need));
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Should_exit(&exit));
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Have_restart(&have, name));
  CHECK(need == 0 && exit == 0 && have == 0);
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Start_restart(name));
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Complete_restart(1));
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Start_checkpoint());
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Route_file("/any/name", path));
  CHECK(std::string(path) == "/any/name" && std::string(name) == "untouched");
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Route("other", path, sizeof path));
  CHECK(std::string(path) == "other");
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Complete_checkpoint(1));
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Start_output("a", SCR_FLAG_OUTPUT));
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Complete_output(1));
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Start("a"));
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Complete("a", 1));
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Current("a"));
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Drop("a"));
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Delete("a"));
  CHECK_CODE(CAIRN_E_DISABLED, SCR_Finalize());
}

/// The prefix directory does not exist, and cannot be made: SCR_Init says so, and the first dataset
/// that is lost by it.
void no_prefix(Verdict& verdict) {
  char path[SCR_MAX_FILENAME];
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK(offered().empty());
  for (const char* dataset : {"a", "b", "c"}) {
    CHECK_CODE(SCR_SUCCESS, SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT));
    const bool goes_outside = *dataset == 'b';
    if (goes_outside) CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Route_file("/tmp/outside", path));
    const std::string inside = std::getenv("SCR_PREFIX") + ("/" + own(dataset));
    CHECK_CODE(SCR_SUCCESS, SCR_Route_file(inside.c_str(), path));
    CHECK(write_file(dataset, path));
    if (goes_outside) expect_error("SCR_Complete_output|/tmp/outside");
    const int code = SCR_Complete_output(1);
    CHECK(code == (goes_outside ? CAIRN_E_INVALID : CAIRN_E_NOT_COPIED));
  }
  expect_error("SCR_Finalize|cairn scavenge");
  CHECK_CODE(CAIRN_E_NOT_COPIED, SCR_Finalize());
}

void when_to_checkpoint(Verdict& verdict) {
  with(verdict, {}, [&] {
    for (int i = 0; i < 20; ++i) CHECK(needed() == 0);
  });
  with(verdict, {"SCR_CHECKPOINT_INTERVAL=3"}, [&] {
    for (int i = 1; i <= 7; ++i) CHECK(needed() == (i % 3 == 0 ? 1 : 0));
  });
  with(verdict, {"SCR_CHECKPOINT_SECONDS=1"}, [&] {
    sleep_ms(1050);
    CHECK(needed() == 1 && needed() == 1);
    CHECK(make_checkpoint("a"));
    CHECK(needed() == 0);
  });
  with(verdict, {"SCR_CHECKPOINT_OVERHEAD=40"}, [&] {
    CHECK(needed() == 1);  // nothing is known of the cost yet
    CHECK_CODE(SCR_SUCCESS, SCR_Start_checkpoint());
    CHECK(route_and_write("slow"));
    sleep_ms(200);
    CHECK_CODE(SCR_SUCCESS, SCR_Complete_checkpoint(1));
    CHECK(needed() == 0);
    // The cost is 200 ms and what the calls took: wait until it is surely below 40 % of the time.
    bool due = false;
    for (int waited_ms = 0; !due && waited_ms < 10'000; waited_ms += 50) {
      sleep_ms(50);
      due = needed() == 1;
      CHECK(!due || waited_ms >= 200);
    }
    CHECK(due);
  });
}

void when_to_stop(Verdict& verdict) {
  const auto end_in = [](int time_s) { return "SCR_END_TIME=" + std::to_string(now_s() + time_s); };
  with(verdict, {}, [&] { CHECK(stopping() == 0); });
  with(verdict, {end_in(-10)}, [&] { CHECK(stopping() == 0); });
  with(verdict, {end_in(1000), "SCR_HALT_SECONDS=500"},
       [&] { CHECK(stopping() == 0 && needed() == 0); });
  with(verdict, {end_in(1000), "SCR_HALT_SECONDS=2000"}, [&] {
    CHECK(stopping() == 1 && needed() == 1);
    CHECK(make_checkpoint("last"));  // nothing ends the run
  });
}

void ended_by_init(Verdict& verdict) {
  SCR_Configf("SCR_END_TIME=%ld", now_s() + 1000);
  SCR_Config("SCR_HALT_SECONDS=2000");
  SCR_Init();
  CHECK(!"reached");
}

void ended_by_complete(Verdict& verdict) {
  const long halt_s = now_s() + 3;
  SCR_Configf("SCR_END_TIME=%ld", halt_s + 1000);
  SCR_Config("SCR_HALT_SECONDS=1000");
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK(stopping() == 0);
  while (now_s() <= halt_s) sleep_ms(100);
  make_checkpoint("last");
  CHECK(!"reached");
}
