#include "files/process_identity.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace cairn {
namespace {

/// Empty if it is unknown.
std::string this_kernel() {
  const std::string boot = this_boot();
  std::error_code error;
  const std::string ids = std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
  return boot.empty() || ids.empty() ? "" : boot + " " + ids;
}

struct ProcessState {
  char state = 0;  ///< 0 if it is unknown
  std::uint64_t start_ticks = 0;
};

ProcessState state_of(std::uint64_t process) {
  constexpr int fields_between = 18;  // of the state and the start
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // The name of the program, in parentheses, may contain any character.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  ProcessState found;
  fields >> found.state;
  std::string passed;
  for (int i = 0; i < fields_between; ++i) fields >> passed;
  fields >> found.start_ticks;
  return found;
}

}  // namespace

std::string this_boot() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot;
}

ProcessIdentity this_process() {
  const auto process = static_cast<std::uint64_t>(::getpid());
  return {this_kernel(), process, state_of(process).start_ticks};
}

/// The rule of docs/format/last-run-record.md, which python/cairn/life.py follows as well.
Life life_of(const ProcessIdentity& process) {
  if (process.kernel.empty() || process.process == 0 || process.kernel != this_kernel())
    return Life::unknown;
  if (::kill(static_cast<pid_t>(process.process), 0) != 0 && errno == ESRCH) return Life::gone;
  // If /proc hides the processes of other users, a process with this id counts as the same process.
  const ProcessState now = state_of(process.process);
  const bool has_ended = now.state == 'Z' || now.state == 'X';
  const bool is_another =
      now.start_ticks != 0 && process.start_ticks != 0 && now.start_ticks != process.start_ticks;
  return has_ended || is_another ? Life::gone : Life::lives;
}

}  // namespace cairn
