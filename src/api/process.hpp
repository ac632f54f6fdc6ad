// The job of this process behind scr.h: one Session on MPI_COMM_WORLD, and how it came by its
// settings.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/background_tasks.hpp"
#include "comm/mpi.hpp"
#include "config/app_settings.hpp"
#include "config/resolve.hpp"
#include "files/clock.hpp"
#include "files/files.hpp"
#include "session/last_run.hpp"
#include "session/session.hpp"

namespace cairn {

class Process {
 public:
  Process();
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Collective over MPI_COMM_WORLD.
  Status init();
  Status finalize();

  /// The session, or why there is none. For collective calls: where SCR_Init has not been called
  /// yet, or SCR_Finalize has, the ranks first make sure that they are in the same call.
  Result<Session*> session_for_all(std::string_view call);
  /// Local: as session_for_all, for local calls.
  Result<Session*> session(std::string_view call);

  /// SCR_Config: the value asked for, if any. Local; init compares what the ranks were told.
  Result<std::optional<std::string>> configure(const std::string& request);

  /// Collective over MPI_COMM_WORLD, while there is a session.
  Status agree(Status mine);

  /// Absolute and normalised, below settings().prefix if there is a way to see it so.
  std::string absolute(const std::string& name) const;

  /// True if the user allows that a halted program is ended (SCR_HALT_EXIT).
  bool may_exit() const { return resolved_ && resolved_->settings.halt_exit; }

  /// What went wrong, and what to do about it.
  std::string text_of(const Error& error) const;

  /// In MPI_COMM_WORLD; 0 while there is no MPI. By the launcher's count where the MPI is not the
  /// program's, so that one process of the launch speaks for all.
  int rank() const;
  const Log& log() const { return log_; }

 private:
  bool outside() const { return state_ == State::before_init || state_ == State::finalized; }
  Status enter_outside(std::string_view call);
  Status refuse_init();
  Status compare_app_settings();
  Status resolve_settings();
  void report_settings() const;
  Status check_library();
  Status check_launch();
  Status start_session();
  void open_tasks();
  /// A thread of the session hangs in a call of the file system. It ends with the process; until
  /// then, all that it uses stays.
  void leave_session();
  void log_failed_init(const Settings& settings, const Error& why);
  void keep_app_settings_for_commands();
  Lookup lookup() const;

  const pid_t process_;
  Log log_;
  std::unique_ptr<Files> files_;
  std::unique_ptr<Clock> clock_;
  AppSettings app_;
  std::optional<ResolvedSettings> resolved_;
  std::string real_prefix_;  ///< the prefix directory, without links, as SCR_Init has found it
  const Status library_;     ///< the MPI that answers is the one that Cairn was built for
  std::optional<int> launched_rank_;
  AnnouncedRun run_;
  std::unique_ptr<MpiCommunicator> comm_;
  std::unique_ptr<WorkBehind> work_behind_;  ///< by tasks_
  std::unique_ptr<Session> session_;
  /// Ends before the session and its lock do.
  std::unique_ptr<Background> background_ = make_background_thread();
  std::unique_ptr<BackgroundTasks> tasks_;  ///< of protection behind the program, if it is wanted
  enum class State {
    before_init,
    running,
    disabled,
    failed,
    finalized
  } state_ = State::before_init;
};

/// The one process-wide object; made on first use.
Process& process();

}  // namespace cairn
