// Datasets by name, and the calls of 2009; each over several runs.
#include "scenario.hpp"

void calls_of_2009(Verdict& verdict) {
  char path[SCR_MAX_FILENAME];
  const std::string name = own("state");
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK_CODE(SCR_SUCCESS, SCR_Route(name.c_str(), path, sizeof path));
  const bool restarting = name != path;
  if (restarting) CHECK(holds_file("state", path));
  if (restarting && rank_of_this() == 0) say("restarted");
  CHECK_CODE(SCR_SUCCESS, SCR_Start(rank_of_this() == 1 ? nullptr : name.c_str()));
  CHECK_CODE(SCR_SUCCESS, SCR_Route(name.c_str(), path, sizeof path));
  CHECK(name != path && write_file("state", path));
  CHECK_CODE(SCR_SUCCESS, SCR_Complete(name.c_str(), 1));

  // One rank's file is bad: the checkpoint is dropped, the one before is there in the next run.
  CHECK_CODE(SCR_SUCCESS, SCR_Start(name.c_str()));
  CHECK(SCR_Route(name.c_str(), path, sizeof path) == SCR_SUCCESS && write_file("torn", path));
  expect_error("SCR_Complete_checkpoint|rank 2|valid=0");
  CHECK_CODE(CAIRN_E_INVALID, SCR_Complete(name.c_str(), rank_of_this() != 2));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}

void names_first_run(Verdict& verdict) {
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK(offered().empty());
  expect_error("SCR_Start_restart|no checkpoint");
  CHECK_CODE(CAIRN_E_NOT_FOUND, SCR_Start_restart(nullptr));
  for (const char* name : {"a", "b", "c", "d"}) CHECK(make_checkpoint(name));
  // Neither checkpoint nor output is never offered.
  CHECK_CODE(SCR_SUCCESS, SCR_Start_output("neither", SCR_FLAG_NONE));
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_output(1));
  CHECK(offered().empty());
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}

/// Deletes "d", tries "c" in vain, sees "b", and says that it is at "a".
void names_second_run(Verdict& verdict) {
  char name[SCR_MAX_FILENAME];
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK(offered() == "d");
  CHECK_CODE(SCR_SUCCESS, SCR_Delete("no such name"));
  CHECK_CODE(SCR_SUCCESS, SCR_Delete("d"));
  CHECK_CODE(SCR_SUCCESS, SCR_Drop("c"));
  CHECK(offered() == "c");
  CHECK_CODE(SCR_SUCCESS, SCR_Start_restart(name));
  CHECK(std::string(name) == "c" && route_and_read("c"));
  expect_error("SCR_Complete_restart|rank 1 could not restart");
  CHECK_CODE(CAIRN_E_INVALID, SCR_Complete_restart(rank_of_this() != 1));
  CHECK(offered() == "b");
  CHECK_CODE(SCR_SUCCESS, SCR_Current("a"));
  CHECK(offered() == "a"); /* it was asked for */
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}

/// "a" is the newest that is left, and numbers go on from its own, 1.
void names_third_run(Verdict& verdict) {
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK(offered() == "a");
  CHECK_CODE(SCR_SUCCESS, SCR_Start_restart(nullptr));
  CHECK(route_and_read("a"));
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_restart(1));
  CHECK(offered().empty());
  CHECK_CODE(SCR_SUCCESS, SCR_Start_checkpoint());
  CHECK(route_and_write("numbered"));
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_checkpoint(1));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());

  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK(offered() == "scr.dataset.2");
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}
