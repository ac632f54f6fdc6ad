#include "death.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <thread>

namespace {

constexpr std::chrono::milliseconds longest_background{5000};

/// One per process, as the functions of the C library are.
struct Watch {
  DeathPlan plan;
  std::vector<pid_t> victims;  ///< this process is the last, if it is one
  bool striker = false;
  std::string call;
  std::string lacks_room_for;
  int step = 0;
  bool planned = false;  ///< the call is the plan's
  std::atomic<bool> inside = false;
  std::atomic<int> changes = 0;
  std::atomic<int> counted = 0;  ///< of those that the plan counts
};

thread_local bool caller = false;  ///< this thread makes the calls

Watch& watch() {
  static Watch instance;
  return instance;
}

bool is_victim(const std::string& victims, std::size_t rank) {
  return victims == "all" ||
         ("," + victims + ",").find("," + std::to_string(rank) + ",") != std::string::npos;
}

void strike(const std::string& what, const std::string& where) {
  const Watch& at = watch();
  const std::string text = at.call + " " + std::to_string(at.step) + " " + what + " " + where;
  const int note = ::open(at.plan.note.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (::write(note, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    std::perror(at.plan.note.c_str());
  for (const pid_t victim : at.victims) ::kill(victim, SIGKILL);
}

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool counts(std::string_view operation, std::string_view path) {
  const std::string_view wanted = watch().plan.operation;
  const std::size_t colon = wanted.find(':');
  if (!wanted.empty() && wanted.substr(0, colon) != operation) return false;
  return colon == std::string_view::npos || name_of(path) == wanted.substr(colon + 1);
}

/// Whether the change that is about to be made is the one to die in. How far the background has
/// come differs from run to run; so only a change that is named is sought there too.
bool is_the_one(std::string_view operation, std::string_view path) {
  Watch& at = watch();
  if (!at.inside || (!caller && at.plan.operation.empty())) return false;
  if (caller) ++at.changes;
  return at.planned && at.plan.nth > 0 && counts(operation, path) && ++at.counted == at.plan.nth;
}

void before(const char* operation, const char* path) {
  if (is_the_one(operation, path)) strike(operation, path);
}

std::string path_of(int file) {
  std::array<char, PATH_MAX> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  return {path.data(), static_cast<std::size_t>(size < 0 ? 0 : size)};
}

ssize_t write_at(int file, const void* data, std::size_t size, off_t offset) {
  const iovec piece = {const_cast<void*>(data), size};
  return ::pwritev(file, &piece, 1, offset);
}

}  // namespace

void plan_death(const DeathPlan& plan, int rank, const std::vector<pid_t>& pids) {
  Watch& at = watch();
  at.plan = plan;
  at.striker = !plan.at.empty() && plan.striker == rank;
  for (std::size_t i = 0; i < pids.size(); ++i)
    if (is_victim(plan.victims, i) && static_cast<int>(i) != rank) at.victims.push_back(pids[i]);
  if (is_victim(plan.victims, static_cast<std::size_t>(rank)))
    at.victims.push_back(pids[static_cast<std::size_t>(rank)]);
}

void lack_room_for(const std::string& begin) { watch().lacks_room_for = begin; }

void pass_point(const std::string& point, int step) {
  Watch& at = watch();
  if (!at.striker || at.plan.at != point || at.plan.step != step) return;
  at.call = point;
  at.step = step;
  strike("point", "outside");
}

void enter_call(const std::string& call, int step) {
  Watch& at = watch();
  at.call = call;
  at.step = step;
  at.changes = 0;
  at.counted = 0;
  at.planned = at.striker && at.plan.at == call && at.plan.step == step;
  caller = true;
  at.inside = true;
  if (!at.planned || at.plan.nth > 0) return;
  std::thread([&at] {
    std::this_thread::sleep_for(std::chrono::microseconds(at.plan.after_us));
    strike("time", at.inside ? "inside" : "outside");
  }).detach();
}

int leave_call() {
  Watch& at = watch();
  for (auto left = longest_background; at.planned && at.plan.nth > 0 && left.count() > 0; --left)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  at.inside = false;
  while (at.planned && at.plan.nth == 0) ::pause();
  return at.changes;
}

// --- in place of the C library's ---

#define IN_PLACE extern "C" __attribute__((visibility("default")))

IN_PLACE int mkdir(const char* path, mode_t mode) noexcept {
  before("mkdir", path);
  return ::mkdirat(AT_FDCWD, path, mode);
}

IN_PLACE int rmdir(const char* path) noexcept {
  before("rmdir", path);
  return ::unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

IN_PLACE int unlink(const char* path) noexcept {
  before("unlink", path);
  return ::unlinkat(AT_FDCWD, path, 0);
}

IN_PLACE int rename(const char* from, const char* to) noexcept {
  before("rename", to);
  return ::renameat(AT_FDCWD, from, AT_FDCWD, to);
}

IN_PLACE int sched_setscheduler(pid_t thread, int policy, const sched_param* param) noexcept {
  before("piece", "policy");
  return static_cast<int>(::syscall(SYS_sched_setscheduler, thread, policy, param));
}

IN_PLACE int sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t* cores) noexcept {
  before("piece", "core");
  return static_cast<int>(::syscall(SYS_sched_setaffinity, thread, bytes, cores));
}

/// Dies with half of it written.
IN_PLACE ssize_t pwrite(int file, const void* data, size_t size, off_t offset) {
  const std::string path = path_of(file);
  if (is_the_one("pwrite", path)) {
    [[maybe_unused]] const ssize_t torn = write_at(file, data, size / 2, offset);
    strike("pwrite", path);
  }
  const std::string& full = watch().lacks_room_for;
  if (!full.empty() && name_of(path).substr(0, full.size()) == full) {
    errno = ENOSPC;
    return -1;
  }
  return write_at(file, data, size, offset);
}
