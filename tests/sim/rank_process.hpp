// The process of one rank of a simulated job: its messages, time, files, log and session. Each
// simulated job with a session is made of these.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "background.hpp"
#include "files/hooked_files.hpp"
#include "memory_files.hpp"
#include "session/session.hpp"
#include "shape.hpp"
#include "simulated_clock.hpp"

namespace cairn::sim {

struct RankProcess {
  /// References must outlive the process.
  struct Environment {
    Seam& seam;
    Chance& chance;
    Postboxes& boxes;
    HelperBackground& background;
    int rank = 0;
    Settings settings;  ///< with the name of the node
    Mounts mounts;
    FileHook observe;  ///< before each operation on `files`, when others have had their turn
    Disturbances disturbances = {};
    Postboxes* behind = nullptr;  ///< null: nothing goes on behind the program
    std::function<void(const std::string& text)> logged = nullptr;  ///< the trace has it too
  };
  explicit RankProcess(Environment of);
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  /// Collective.
  Status init();

  /// Writes a file of the program, and gives it its mode and its times.
  Status write(const std::string& path, const FileShape& file, const Blob& content);
  /// Without faults. Nothing if the file is not there.
  std::optional<Blob> read(const std::string& path) const;

  const Environment env;
  ScheduledCommunicator comm;
  SimulatedClock clock;
  std::unique_ptr<Files> memory;  ///< no call fails, and none lets others go first
  std::unique_ptr<Files> files;
  Log log;
  std::optional<ScheduledCommunicator> second_comm;
  std::optional<HelperWork> work;
  std::unique_ptr<Session> session;
};

/// One thread of each rank, and of each helper. Violation if they wait for each other for ever.
void run_ranks(Scheduler& scheduler, std::deque<HelperBackground>& helpers,
               const std::function<void(int rank)>& rank_main);

}  // namespace cairn::sim
