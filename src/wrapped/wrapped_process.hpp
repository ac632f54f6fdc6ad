// One process of a wrapped program: its messages, its session, and the thread that looks how far
// the program is.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/log.hpp"
#include "comm/peer_network.hpp"
#include "config/resolve.hpp"
#include "files/clock.hpp"
#include "files/files.hpp"
#include "session/last_run.hpp"
#include "wrapped/wrapped_job.hpp"

namespace cairn {

/// What becomes of the redirected files below this directory, after a part of the job was lost.
std::string fate_of_waiting_files(const std::string& directory);

/// Nothing of it ends the program or fails a call of it: what goes wrong is logged, and the program
/// goes on without checkpoints of Cairn.
class WrappedProcess {
 public:
  struct Options {
    std::string redirected;  ///< as in WrappedJob::Environment, as the next two
    std::function<Status(const std::string& name)> move_to_plain_place;
    std::function<std::string_view(std::string_view name)> find_step;
    /// No step becomes a checkpoint from now on, so nothing new should be redirected.
    std::function<void()> job_lost = [] {};
    std::chrono::milliseconds pause{50};        ///< between two looks
    std::chrono::milliseconds short_pause{10};  ///< while a step is under way
  };

  /// Collective over `world`, which is not used any more when this returns. Restores the newest
  /// checkpoint, if there is one. Null if it cannot be done, which one line on rank 0 says: then
  /// nothing is to be redirected.
  static std::unique_ptr<WrappedProcess> start(Communicator& world, Log log,
                                               const ResolvedSettings& settings, Options options);
  /// Without finish(): the other ranks see that this one has left. Waits until the thread has
  /// ended.
  ~WrappedProcess();
  WrappedProcess(const WrappedProcess&) = delete;
  WrappedProcess& operator=(const WrappedProcess&) = delete;

  WrappedJob& job() { return *job_; }
  /// All ranks have finished their files. Waits until the last steps are checkpoints, and copied to
  /// the prefix directory where that is due. False if has_lost_rank(): then the redirected files
  /// stay where they are, and the next job decides, as after a kill.
  bool finish();
  /// A rank has died before it has finished, so steps that are no checkpoints may lack its files.
  bool has_lost_rank() const { return has_failed_ && !network_->death(); }
  /// For the end of a process that does not finish(): as the destructor, but where the thread hangs
  /// in a call of the system, it is left after a moment: then this must not be destroyed.
  void leave();
  /// The program ends all its processes. Safe in a signal handler: the thread only begins nothing
  /// new, and reports nothing.
  void stop() { stops_ = true; }

 private:
  WrappedProcess(Log log, Options options) : log_(std::move(log)), options_(std::move(options)) {}

  Status prepare(Communicator& world, const ResolvedSettings& settings);
  Status check_places(const Settings& settings);
  Status restore(const std::string& prefix);
  void work();
  void look_until_the_end();
  void report_end(const std::string& why);
  void leave_session();

  const Log log_;
  Log shared_log_;  ///< silent but on rank 0
  const Options options_;
  std::unique_ptr<Files> files_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Background> background_;
  std::unique_ptr<PeerNetwork> network_;
  std::unique_ptr<Communicator> comm_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<WrappedJob> job_;
  AnnouncedRun announced_;
  std::atomic<bool> stops_ = false;
  std::atomic<bool> has_ended_ = false;
  std::atomic<bool> has_failed_ = false;  ///< its network, before all was finished
  std::thread thread_;
};

}  // namespace cairn
