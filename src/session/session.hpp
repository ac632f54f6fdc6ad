// The job's view of Cairn: what scr.h stands on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "session/bounded_work.hpp"
#include "session/dataset_safety.hpp"
#include "session/named_datasets.hpp"
#include "session/schedule.hpp"

namespace cairn {

/// Names of the bits in DatasetInfo::flags, as in scr.h.
inline constexpr std::uint32_t flag_checkpoint = 1U << 0;
inline constexpr std::uint32_t flag_output = 1U << 1;

/// One job on one communicator. Every member function that does not say "Local" is collective over
/// it, although the communicator is passed once, at init: all ranks call it, in the same
/// order, with equal arguments unless said otherwise. Unequal calls or arguments, and calls in a
/// wrong state, are the same error on all ranks and change nothing. The same holds for the calls of
/// datasets(), safety() and schedule(). All that is passed in must outlive the session.
class Session {
 public:
  struct Environment {
    Communicator& comm;
    Files& files;
    Clock& clock;
    Background& background;  ///< removes what is superseded
    Log log;  ///< rank 0 says what concerns all, other ranks what concerns them alone
    WorkBehind* behind = nullptr;  ///< null: nothing goes on behind the program
  };

  /// Collective. Opens the stores, takes the job's lock on every node, and restores what the caches
  /// hold. `settings` are equal on all ranks but for node_name.
  /// Errors: bad_setting, untrusted, busy, io.
  static Result<std::unique_ptr<Session>> init(const Environment& environment,
                                               const Settings& settings);

  /// Ends the session: from here on every call is wrong_state. `last` is what this process has to
  /// change in the prefix directory after all else; it may be called by another thread. IDLE.
  Status finalize(std::function<void()> last = nullptr);
  /// Local, after finalize(): a thread hangs in a call of the file system. Until the process ends
  /// it uses the session and all that was passed in, so none of these may be destroyed.
  bool is_held() const { return is_held_; }
  /// Local. The process ends without finalize(): stops what goes on behind the program. False if
  /// is_held() then.
  bool leave();

  /// Is there a checkpoint to restart from? Its name. Where the cache has none, fetches one from
  /// the prefix directory. wrong_ranks if the newest one was written by another number of ranks.
  /// IDLE.
  Result<std::optional<std::string>> have_restart();
  /// Checks all its blocks, repairs what is bad, and opens it for reading; returns its name. One
  /// that is read where it is in the prefix directory has been checked by have_restart(). On an
  /// error that checkpoint is out, and have_restart() names the next older one. IDLE -> RESTART.
  Result<std::string> start_restart();
  /// `valid` may differ. Unless it is true everywhere the checkpoint is removed: invalid. RESTART
  /// -> IDLE.
  Status complete_restart(bool valid);

  /// `name` may be empty. IDLE -> CHECKPOINT or OUTPUT.
  Status start_checkpoint() { return start(Phase::checkpoint, "", flag_checkpoint); }
  Status start_output(const std::string& name, std::uint32_t flags) {
    return start(Phase::output, name, flags);
  }
  /// Protects and commits what was written; `valid` may differ, and is false for all if it is for
  /// one. On an error the dataset is gone, and the older ones are as they were; but an output that
  /// could not be copied to the prefix directory is an error too, and stays in the cache, to be
  /// tried again with the next dataset. -> IDLE.
  Status complete_checkpoint(bool valid) { return complete(Phase::checkpoint, valid); }
  Status complete_output(bool valid) { return complete(Phase::output, valid); }

  /// Local, thread-safe. Where to open the file that the application calls `path` (absolute). In
  /// CHECKPOINT and OUTPUT a place in the cache, or the path itself where the cache is bypassed,
  /// its folder made; in RESTART the file of this rank, if it is there; in IDLE the path itself.
  Result<std::string> route_file(const std::string& path);
  /// Local. The file in the checkpoint that a restart would come from, if its blocks were checked
  /// in this run, else `path`.
  std::string route_loaded(const std::string& path);

  /// Local. RESTART: the names, relative to the prefix directory, of the files that this rank had
  /// in the checkpoint.
  std::vector<std::string> restart_names() const;

  /// Local. The parts that have calls of their own.
  NamedDatasets& datasets() { return datasets_; }
  DatasetSafety& safety() { return safety_; }
  Schedule& schedule() { return schedule_; }
  /// Local. Takes the program's hints, in any thread.
  Pace& pace() { return run_.pace; }

  /// Local. `ended` once finalize() has done its part, whatever it returned.
  Phase phase() const { return calls_.phase(); }
  /// Local. Of the ranks on the nodes.
  const Placement& placement() const { return run_.placement; }

 private:
  Session(const Environment& environment, const Settings& settings);

  // init
  Status prepare();
  void wait_for_no_file();
  Status open_stores_and_recover();
  Status open_prefix();
  Status purge_if_asked();

  Status start(Phase phase, const std::string& name, std::uint32_t flags);
  void note_failed_start(std::uint32_t flags);
  Status complete(Phase phase, bool valid);
  void log_computing();
  void close_books(bool is_in_hurry, std::function<void()> last);

  Communicator& comm_;
  ThisRun run_;
  CachedDatasets cached_;
  PrefixSide prefix_;
  Flushing flushing_;
  LateProtection late_;
  Calls calls_;
  Routing routing_;
  DatasetWriter writer_;
  RestartFiles restart_files_;
  Restarting restarting_;
  NamedDatasets datasets_;
  DatasetSafety safety_;
  Schedule schedule_;

  std::int64_t computes_since_us_ = 0;
  bool is_held_ = false;
  BoundedWork closing_;  ///< the last member: its thread uses the others
};

}  // namespace cairn
