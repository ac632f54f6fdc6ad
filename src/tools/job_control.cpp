#include "tools/job_control.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace cairn {
namespace {

/// No way out of the folders that are looked through.
bool is_command_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace

const std::vector<OutsideCommand>& job_control_commands() {
  static const std::vector<OutsideCommand> commands = {
      {"run", "Start a program, and restart it on the remaining nodes when a run dies"},
      {"scavenge", "Save what the nodes of a dead job hold to the prefix directory"},
      {"status", "Show the state of the job of a prefix directory"},
      {"report", "Show what the logs of jobs contain, as a page and as figures for monitoring"},
      {"doctor", "Check whether a job can run here, and print what to do if it cannot"},
      {"clean", "Remove the leftovers of dead jobs from the caches of this node"},
      {"prerun", "Prepare a prefix directory, for scripts that launch their program themselves"},
      {"down-nodes", "Show which nodes of the allocation are unfit for a run"},
      {"should-exit", "Decide for such a script whether to stop"}};
  return commands;
}

std::string find_outside_command(const std::string& name) {
  if (!is_command_name(name)) return "";
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "";
  const auto beside = self.parent_path();
  for (const auto& folder : {beside, beside / CAIRN_FROM_BIN_TO_LIBEXEC}) {
    const std::string path = (folder / ("cairn-" + name)).lexically_normal();
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

void become_outside_command(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<char*> words = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  ::execv(path.c_str(), words.data());
}

}  // namespace cairn
