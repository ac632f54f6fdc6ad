#pragma once

#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

namespace cairn {

/// Whether another thread of this process has a core or waits for one ("R" in proc(5)).
inline bool another_thread_has_work() {
  const std::string own = std::to_string(gettid());
  std::error_code failure;  // a thread that has ended has no state
  for (auto task = std::filesystem::directory_iterator("/proc/self/task", failure);
       !failure && task != std::filesystem::directory_iterator(); task.increment(failure)) {
    std::string stat;
    std::getline(std::ifstream(task->path() / "stat"), stat);
    const std::size_t name_end = stat.rfind(") ");
    if (task->path().filename() != own && name_end != std::string::npos &&
        stat[name_end + 2] == 'R')
      return true;
  }
  return false;
}

/// MPI_Finalize, once the other threads of this process sleep, or 10 s later. Open MPI 4.1 hands a
/// message of MPI_Init to a thread of its own. If that thread has had no core until MPI_Finalize,
/// which happens to a short program on a busy machine, it then runs code that is no longer loaded,
/// or waits for ever. Programs without Cairn end so too.
inline void finalize_mpi() {
  using namespace std::chrono_literals;
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (another_thread_has_work() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(1ms);
  MPI_Finalize();
}

}  // namespace cairn
