// Arguments out of their domain, and where files are routed to.
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "scenario.hpp"

namespace {

bool exists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

/// NULL where an answer is to go, on all ranks and on one alone, is the same error everywhere.
void null_answers(Verdict& verdict) {
  for (const int odd : {-1, 1}) {
    int flag = 7;
    int* const place = odd < 0 || rank_of_this() == odd ? nullptr : &flag;
    expect_error("SCR_Need_checkpoint|flag is NULL");
    CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Need_checkpoint(place));
    expect_error("SCR_Should_exit|flag is NULL");
    CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Should_exit(place));
    expect_error("SCR_Have_restart|flag is NULL");
    CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Have_restart(place, nullptr));
    CHECK(place == nullptr || flag == 0);
  }
}

void null_names(Verdict& verdict) {
  for (const char* name : {static_cast<const char*>(nullptr), ""}) {
    expect_error("SCR_Current|NULL or empty");
    CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Current(name));
    expect_error("SCR_Drop|NULL or empty");
    CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Drop(name));
    expect_error("SCR_Delete|NULL or empty");
    CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Delete(name));
  }
  CHECK(SCR_Config(nullptr) == nullptr);
}

/// Local errors, on rank 1 alone; the others do not notice.
void bad_routes(Verdict& verdict) {
  if (rank_of_this() != 1) return;
  char path[SCR_MAX_FILENAME] = "untouched";
  expect_line("rank 1|SCR_Route_file|name is NULL");
  CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Route_file(nullptr, path));
  expect_line("rank 1|SCR_Route_file|file is NULL");
  CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Route_file("a", nullptr));
  expect_line("rank 1|SCR_Route_file|/etc/a|not below the prefix|SCR_PREFIX");
  CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Route_file("/etc/a", path));
  expect_line("rank 1|SCR_Route_file|not below the prefix");
  CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Route_file("../a", path));
  std::string longest;
  while (longest.size() < SCR_MAX_FILENAME) longest += "folder/";
  expect_line("rank 1|SCR_Route_file|1023 are allowed");
  CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Route_file(longest.c_str(), path));
  expect_line("rank 1|SCR_Route|buffer has 5");
  CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Route("a.1", path, 5));
  expect_line("rank 1|SCR_Route|buffer has 0");
  CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Route("a.1", path, 0));
  CHECK(std::string(path) == "untouched");
}

void bad_starts(Verdict& verdict) {
  const std::string longest(SCR_MAX_FILENAME - 1, 'n');
  expect_error("SCR_Start_output|1024 bytes");
  CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Start_output((longest + "n").c_str(), SCR_FLAG_NONE));
  for (const int flags : {4, -1}) {
    expect_error("SCR_Start_output|flags");
    CHECK_CODE(CAIRN_E_BAD_ARGUMENT, SCR_Start_output("a", flags));
  }
  CHECK(make_checkpoint(longest.substr(0, 200)));
  CHECK_CODE(SCR_SUCCESS, SCR_Start_output(longest.c_str(), SCR_FLAG_CHECKPOINT));
  CHECK(route_and_write("longest"));
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_output(1));
}

}  // namespace

void bad_arguments(Verdict& verdict) {
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  null_answers(verdict);
  null_names(verdict);
  bad_starts(verdict);
  CHECK_CODE(SCR_SUCCESS, SCR_Start_output("a", SCR_FLAG_CHECKPOINT));
  CHECK(route_and_write("a"));
  bad_routes(verdict);
  expect_error("SCR_Complete_output|rank 1|SCR_Route_file");
  CHECK_CODE(CAIRN_E_INVALID, SCR_Complete_output(1));

  CHECK_CODE(SCR_SUCCESS, SCR_Start_output("refused", SCR_FLAG_CHECKPOINT));
  expect_error("SCR_Complete_output|rank 3|valid=0");
  CHECK_CODE(CAIRN_E_INVALID, SCR_Complete_output(rank_of_this() != 3));
  CHECK_CODE(SCR_SUCCESS, SCR_Start_output("missing", SCR_FLAG_CHECKPOINT));
  char path[SCR_MAX_FILENAME];
  CHECK_CODE(SCR_SUCCESS, SCR_Route_file(own("not written").c_str(), path));
  expect_error("SCR_Complete_output|rank 0|not written.0");
  CHECK_CODE(CAIRN_E_INVALID, SCR_Complete_output(1));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}

void routes(Verdict& verdict) {
  char first[SCR_MAX_FILENAME], second[SCR_MAX_FILENAME];
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK_CODE(SCR_SUCCESS, SCR_Route_file("/etc/any", first));
  CHECK(std::string(first) == "/etc/any");
  const std::string name = own("here/file");
  const std::string absolute =
      std::filesystem::current_path().string() + "/here/./deep/../" + own("file");
  CHECK_CODE(SCR_SUCCESS, SCR_Start_output(nullptr, SCR_FLAG_CHECKPOINT));
  CHECK_CODE(SCR_SUCCESS, SCR_Route_file(name.c_str(), first));
  CHECK_CODE(SCR_SUCCESS, SCR_Route_file(absolute.c_str(), second));
  CHECK(std::string(first) == second);
  CHECK_CODE(SCR_SUCCESS, SCR_Route_file(own("there/file").c_str(), second));
  CHECK(std::string(first) != second);
  CHECK(write_file("here", first));
  CHECK(write_file("there", second));
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_output(1));
  CHECK(!exists(name));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());

  // Read back in the same process, by a second life of the library.
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK(offered() == "scr.dataset.1");
  CHECK_CODE(SCR_SUCCESS, SCR_Start_restart(nullptr));
  CHECK(SCR_Route_file(absolute.c_str(), first) == SCR_SUCCESS && holds_file("here", first));
  CHECK(SCR_Route_file(own("there/file").c_str(), first) == SCR_SUCCESS &&
        holds_file("there", first));
  expect_line("SCR_Route_file|rank " + std::to_string(rank_of_this()) + " wrote no file");
  CHECK_CODE(CAIRN_E_NOT_FOUND, SCR_Route_file(own("elsewhere/file").c_str(), first));
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_restart(1));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}

void threads(Verdict& verdict) {
  constexpr int at_once = 8;
  constexpr int files = 40;
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  CHECK_CODE(SCR_SUCCESS, SCR_Start_checkpoint());
  std::vector<std::vector<std::string>> paths(at_once);
  std::atomic<int> failed = 0;
  std::vector<std::thread> workers;
  for (auto& mine : paths)
    workers.emplace_back([&mine, &failed] {
      for (int i = 0; i < files; ++i) {
        char path[SCR_MAX_FILENAME];
        const std::string name = "folder." + std::to_string(i % 5) + "/" + own(std::to_string(i));
        if (SCR_Route_file(name.c_str(), path) != SCR_SUCCESS) ++failed;
        mine.emplace_back(path);
      }
    });
  for (std::thread& worker : workers) worker.join();
  CHECK(failed == 0);
  for (const auto& mine : paths) CHECK(mine == paths[0]);
  CHECK(std::set<std::string>(paths[0].begin(), paths[0].end()).size() == files);
  for (const std::string& path : paths[0]) CHECK(write_file("thread", path.c_str()));
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_checkpoint(1));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}

/// SCR_PREFIX is a link to the folder that API_REAL_PREFIX names.
void linked_prefix(Verdict& verdict) {
  const std::string link = std::getenv("SCR_PREFIX");
  const std::string real = std::getenv("API_REAL_PREFIX");
  char path[SCR_MAX_FILENAME], same[SCR_MAX_FILENAME];
  CHECK_CODE(SCR_SUCCESS, SCR_Init());
  const bool restarts = offered() == "linked";
  const std::string file = (restarts ? "newer/" : "new/") + own("f");
  if (restarts) {
    CHECK_CODE(SCR_SUCCESS, SCR_Start_restart(nullptr));
    CHECK(SCR_Route_file((real + "/new/" + own("f")).c_str(), path) == SCR_SUCCESS);
    CHECK(holds_file("linked", path));
    CHECK_CODE(SCR_SUCCESS, SCR_Complete_restart(1));
    if (rank_of_this() == 0) say("restarted");
  }
  CHECK_CODE(SCR_SUCCESS, SCR_Start_output("linked", SCR_FLAG_CHECKPOINT));
  CHECK_CODE(SCR_SUCCESS, SCR_Route_file((link + "/" + file).c_str(), path));
  // A directory that hangs must not be looked at in these calls, so here the link is away, and a
  // look at the path below the directory itself leads out of it.
  const std::string away = link + ".away";
  const std::string out = real + "/" + file.substr(0, file.find('/'));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank_of_this() == 0)
    CHECK(std::rename(link.c_str(), away.c_str()) == 0 && ::symlink("/", out.c_str()) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  for (const std::string& to : {link + "/", real + "/", std::string()}) {
    CHECK_CODE(SCR_SUCCESS, SCR_Route_file((to + file).c_str(), same));
    CHECK(std::string(path) == same);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank_of_this() == 0)
    CHECK(std::rename(away.c_str(), link.c_str()) == 0 && ::unlink(out.c_str()) == 0);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(write_file("linked", path));
  CHECK_CODE(SCR_SUCCESS, SCR_Complete_output(1));
  CHECK_CODE(SCR_SUCCESS, SCR_Finalize());
}
