// The job's view of Cairn: what scr.h stands on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/once.hpp"
#include "session/cadence.hpp"
#include "session/dataset_safety.hpp"
#include "session/dataset_writer.hpp"
#include "session/halting.hpp"
#include "session/last_work.hpp"
#include "session/restarting.hpp"

namespace cairn {

/// Names of the bits in DatasetInfo::flags, as in scr.h.
inline constexpr std::uint32_t flag_checkpoint = 1U << 0;
inline constexpr std::uint32_t flag_output = 1U << 1;

/// One job on one communicator. Every member function that does not say "Local" is collective over
/// it, although the communicator is passed once, at init: all ranks call it, in the same
/// order, with equal arguments unless said otherwise. Unequal calls or arguments, and calls in a
/// wrong state, are the same error on all ranks and change nothing. All that is passed in must
/// outlive the session.
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

  /// For a call that has no place in a session: wrong_state, or differs where ranks make others.
  Status refuse(std::string_view call, std::string_view legal);

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

  /// A run that is to stop needs one more, unless it is to stop at once. IDLE.
  Result<bool> need_checkpoint();
  /// The run is to stop. IDLE.
  Result<bool> should_exit();
  /// After init() and a Complete: the run is to stop, and nothing that it has made since its last
  /// checkpoint is lost here, or it is to stop at once. IDLE.
  Result<bool> may_end_here();
  /// Local. As the last answer of those three has it: no further checkpoint is wanted.
  bool stops_at_once() const { return halting_state_ == Halting::State::halts_at_once; }
  /// Local. The program ends because the run is to stop: logged once.
  void log_exit();
  /// finalize() has done its part, whatever it returned.
  bool is_ended() const { return phase_ == Phase::ended; }

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

  /// The application restarted from dataset `name` by its own means.
  Status current(const std::string& name);
  /// Takes the dataset out of the prefix directory's index; its files stay there.
  Status drop(const std::string& name);
  /// Removes all datasets of that name from the cache and from the prefix directory, files and all.
  /// If a rule forbids that for one of them, or this cannot be known now, none is removed.
  Status remove(const std::string& name);
  /// Removes from the caches all datasets of which a rank has a file with such a name; what is in
  /// the prefix directory stays. Returns their names. `goes` gives the same answer on all ranks.
  /// IDLE.
  Result<std::set<std::string>> remove_from_caches(
      const std::function<bool(const std::string& file)>& goes);

  /// Local. What the newest dataset of this name survives now, as far as this rank can know without
  /// a look at the prefix directory. In any state but UNINIT.
  Safety safety_of(const std::string& name) const;
  /// Waits until it is so safe on all ranks; false if that takes longer than `seconds`: negative
  /// for no limit, 0 for a look. IDLE.
  Result<bool> wait_for(const std::string& name, Safety wanted, double seconds);

  /// Local, thread-safe. Until end_computing() the program sends no messages.
  void begin_computing() { run_.pace.begin_computing(); }
  void end_computing() { run_.pace.end_computing(); }

  /// Local. CHECKPOINT, for messages.
  std::string_view state_name() const;
  /// Local.
  int rank() const { return run_.rank; }
  /// Local. Of the ranks on the nodes.
  const Placement& placement() const { return run_.placement; }

 private:
  enum class Phase { idle, restart, checkpoint, output, ended };

  Session(const Environment& environment, const Settings& settings);

  // init
  Status prepare();
  void wait_for_no_file();
  Status open_stores_and_recover();
  Status open_prefix();
  Status purge_if_asked();

  // the rules of every call
  Status enter(std::string_view call, Phase required, std::string_view arguments = "",
               std::span<std::int64_t> also = {});
  Status wrong_state(std::string_view call, Phase required) const;
  static std::string_view name_of_phase(Phase phase);

  Status start(Phase phase, const std::string& name, std::uint32_t flags);
  void note_failed_start(const Status& why, std::uint32_t flags);
  Status complete(Phase phase, bool valid);
  void count(const Status& checkpoint);
  void finish_protection(bool waits = true);
  Status with_late_failure(Status status);
  void log_computing();
  void close_books(bool is_in_hurry, std::function<void()> last);
  std::optional<DatasetInfo> find_in_cache(const std::string& name);
  std::vector<std::int64_t> find_named(const std::string& name);
  std::set<std::string> remove_cached(const std::vector<std::int64_t>& which);
  void learn_from_rank_0(bool& due);
  void warn_if_never_due();

  Communicator& comm_;
  ThisRun run_;
  CachedDatasets cached_;
  PrefixSide prefix_;
  Flushing flushing_;
  LateProtection late_;
  Routing routing_;
  DatasetWriter writer_;
  RestartFiles restart_files_;
  Restarting restarting_;
  DatasetSafety safety_;
  Cadence cadence_;  ///< on rank 0
  Halting halting_;  ///< on rank 0

  Phase phase_ = Phase::idle;
  std::int64_t computes_since_us_ = 0;
  Halting::State halting_state_ = Halting::State::goes_on;
  Once never_due_;                   ///< SCR_Need_checkpoint has said no, and always will
  Once exit_;                        ///< log_exit()
  bool last_answer_was_no_ = false;  ///< the last answer of SCR_Need_checkpoint, until acted upon
  bool at_checkpoint_ = true;
  Status late_failure_;  ///< of a dataset that an earlier call has completed
  bool is_held_ = false;
  LastWork closing_;  ///< the last member: its thread uses the others
};

}  // namespace cairn
