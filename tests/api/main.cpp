// Runs one scenario of the API test: api_program SCENARIO. Exits with 1 if any check failed on
// any rank.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "mpi/finalize_mpi.hpp"
#include "scenario.hpp"

namespace {

const std::map<std::string, Scenario> scenarios = {
    {"wrong_order", wrong_order},
    {"unequal_calls", unequal_calls},
    {"bad_arguments", bad_arguments},
    {"routes", routes},
    {"threads", threads},
    {"settings", settings},
    {"switched_off", switched_off},
    {"no_prefix", no_prefix},
    {"when_to_checkpoint", when_to_checkpoint},
    {"when_to_stop", when_to_stop},
    {"ended_by_init", ended_by_init},
    {"ended_by_complete", ended_by_complete},
    {"calls_of_2009", calls_of_2009},
    {"names_first_run", names_first_run},
    {"names_second_run", names_second_run},
    {"names_third_run", names_third_run},
    {"linked_prefix", linked_prefix},
    {"linked_folder", linked_folder},
    {"shared_file", shared_file},
    {"open_files", open_files},
    {"wrong_names", wrong_names},
    {"until_halted", until_halted},
    {"until_ended", until_ended},
    {"ended_after_late_failure", ended_after_late_failure},
    {"dataset_states", dataset_states},
    {"dataset_states_restarted", dataset_states_restarted},
    {"lost_connections", lost_connections},
};

std::string content_of(const std::string& name) {
  std::string text;
  for (int i = 0; i < 1000 + 100 * rank_of_this(); ++i)
    text += name + " " + std::to_string(i) + "\n";
  return text;
}

/// Lines of one rank go to the file NAME.RANK in the folder API_LINES: a launcher that gathers the
/// output of all ranks breaks lines and mixes them.
int open_lines(const char* name) {
  const char* folder = std::getenv("API_LINES");
  const std::string path = (folder ? folder : ".") + std::string("/") + own(name);
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

void write_line(int to, const std::string& text) {
  const std::string line = text + "\n";
  [[maybe_unused]] const auto written = ::write(to, line.data(), line.size());
}

}  // namespace

void say(const std::string& text) { write_line(STDOUT_FILENO, text); }

void expect_line(const std::string& words) {
  static const int announced = open_lines("announced");
  write_line(announced, words);
}

bool write_file(const std::string& name, const char* path) {
  std::ofstream out(path, std::ios::binary);
  out << content_of(name);
  out.close();
  return out.good();
}

bool holds_file(const std::string& name, const char* path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return in && text.str() == content_of(name);
}

std::string own(const std::string& name) { return name + "." + std::to_string(rank_of_this()); }

bool route_and_write(const std::string& name) {
  char path[SCR_MAX_FILENAME];
  return SCR_Route_file(own(name).c_str(), path) == SCR_SUCCESS && write_file(name, path);
}

bool route_and_read(const std::string& name) {
  char path[SCR_MAX_FILENAME];
  return SCR_Route_file(own(name).c_str(), path) == SCR_SUCCESS && holds_file(name, path);
}

bool make_checkpoint(const std::string& name) {
  if (SCR_Start_output(name.c_str(), SCR_FLAG_CHECKPOINT) != SCR_SUCCESS) return false;
  const bool written = route_and_write(name);
  return SCR_Complete_output(written) == SCR_SUCCESS;
}

std::string offered() {
  int flag = 0;
  char name[SCR_MAX_FILENAME] = "";
  if (SCR_Have_restart(&flag, name) != SCR_SUCCESS) return "an error";
  return flag ? name : "";
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const auto scenario = argc == 2 ? scenarios.find(argv[1]) : scenarios.end();
  Verdict verdict;
  CHECK(::dup2(open_lines("stderr"), STDERR_FILENO) == STDERR_FILENO);
  CHECK(::close(open_lines("announced")) == 0);  // it is there, also when nothing is announced
  verdict.check(scenario != scenarios.end(), "name a scenario", __LINE__);
  if (scenario != scenarios.end()) scenario->second(verdict);
  int failures = verdict.failures();
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank_of_this() == 0 && failures == 0) say("done");
  cairn::finalize_mpi();
  return failures == 0 ? 0 : 1;
}
