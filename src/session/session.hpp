// The job's view of Cairn: what scr.h stands on.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "comm/communicator.hpp"
#include "config/settings.hpp"
#include "files/background.hpp"
#include "files/clock.hpp"
#include "files/files.hpp"
#include "prefix/event_log.hpp"
#include "prefix/known_names.hpp"
#include "recovery/broadcast_files.hpp"
#include "recovery/cached_dataset.hpp"
#include "session/cadence.hpp"
#include "session/halting.hpp"
#include "session/levels.hpp"
#include "session/open_stores.hpp"
#include "session/prefix_side.hpp"
#include "session/rank_in_names.hpp"
#include "session/routing.hpp"

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
  };

  /// Collective. Opens the stores, takes the job's lock on every node, and restores what the caches
  /// hold. `settings` are equal on all ranks but for node_name.
  /// Errors: bad_setting, untrusted, busy, io.
  static Result<std::unique_ptr<Session>> init(const Environment& environment,
                                               const Settings& settings);

  /// For a call that has no place in a session: wrong_state, or differs where ranks make others.
  Status refuse(std::string_view call, std::string_view legal);

  /// Ends the session: from here on every call is wrong_state. IDLE.
  Status finalize();

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
  /// Local. As the last answer of those two has it: no further checkpoint is wanted.
  bool stops_at_once() const { return halting_state_ == Halting::State::halts_at_once; }
  /// Local. Nothing that the run has made since its last checkpoint is lost if it stops here.
  bool is_at_checkpoint() const { return at_checkpoint_; }
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

  /// The application restarted from dataset `name` by its own means.
  Status current(const std::string& name);
  /// Takes the dataset out of the prefix directory's index; its files stay there.
  Status drop(const std::string& name);
  /// Removes all datasets of that name from the cache and from the prefix directory, files and all.
  Status remove(const std::string& name);

  /// Local. CHECKPOINT, for messages.
  std::string_view state_name() const;
  /// Local.
  int rank() const { return comm_.rank(); }
  /// Local. Of the ranks on the nodes.
  const Placement& placement() const { return placement_; }

 private:
  enum class Phase { idle, restart, checkpoint, output, ended };

  Session(const Environment& environment, const Settings& settings);

  // init
  Status prepare();
  void settle_identity();
  Status open_prefix();
  Status purge_if_asked();

  // the rules of every call
  Status enter(std::string_view call, Phase required, std::string_view arguments = "",
               std::span<std::int64_t> also = {});
  Status wrong_state(std::string_view call, Phase required);
  static std::string_view name_of_phase(Phase phase);

  // datasets
  Status start(Phase phase, const std::string& name, std::uint32_t flags);
  Status complete(Phase phase, bool valid);
  Uuid draw_uuid() const;
  Status make_dataset(const Uuid& uuid, const std::string& name, std::uint32_t flags);
  Status make_place_of_current();
  Status make_rank_folder();
  Result<std::vector<FileEntry>> collect_files(bool valid);
  Status agree_on_files(const Result<std::vector<FileEntry>>& mine, const NameEvidence& of_all);
  void name_shared_file(Error& error, const NameEvidence& of_all);
  Result<std::vector<FileEntry>> look_at_files();
  Status check_names(const std::vector<FileEntry>& mine, const NameEvidence& of_all);
  Status accept_no_files();
  RankRecord record_of_current(std::vector<FileEntry> files) const;
  Status protect_current(std::vector<FileEntry> files);
  void take_in_current(RankRecord record, std::int64_t written_us);
  void report_commit(const RankRecord& record, std::int64_t written_us);
  void log_computing();
  double seconds_since(std::int64_t steady_us) const;
  void log_end(const Status& done);
  Status flush_what_is_due();
  bool belongs_in_prefix(const CachedDataset& dataset);
  void look_for_what_has_gone();
  std::vector<Uuid> due_in_prefix();
  Status check_copied(const std::vector<Uuid>& due) const;
  void abandon_current();
  enum class Parity { removed, recycled };
  void remove_everywhere(const CachedDataset& dataset, Parity parity = Parity::removed);
  void drop_spares();
  void evict(std::size_t store, std::size_t keep);
  void make_room_after(Error& error);
  void warn_if_too_small(std::uint64_t data_bytes);
  void warn_open_elsewhere(const std::string& file);

  // the prefix directory (session_prefix.cpp)
  void learn_from_prefix();
  bool is_overdue();
  void remove_deleted();
  void look_for_prefix_again();
  void ask_again();
  Status claim_prefix();
  Status publish_current();
  std::vector<CachedPart> cached_parts() const;
  Status flush_dataset(CachedDataset& dataset);
  Status flush_due(bool all = false);
  CachedDataset* newest_checkpoint();
  bool is_news(const Error& trouble);
  Status fetch_checkpoint();
  bool look_for_trouble_of_scr(const Uuid& newest_cached, std::string& trouble, bool& may_pass);
  Status stop_without_scr(const std::string& trouble);
  std::string why_nothing_was_fetched(const std::string& trouble, bool is_of_scr) const;
  void warn_from_scratch(const std::string& why);
  void report_what_is_passed_over();
  std::string what_caches_lost() const;
  void log_fetch(const DatasetRecord& dataset, const Status& taken, double seconds);
  Status flush_for_restart();
  Status stop_at(const DatasetRecord& damaged, const Error& why) const;
  Status refuse_to_start(Status why);
  Status refuse_for_now(const std::string& trouble);
  bool is_read_in_place(const DatasetRecord& candidate) const;
  Status take_in(const DatasetRecord& candidate, bool& damaged);
  Status take_into_cache(const DatasetRecord& candidate, bool& damaged);
  Status take_in_place(const DatasetRecord& candidate, bool& damaged);
  void learn_names(const DatasetInfo& dataset, const std::vector<RankRecord>& records);
  void insert(CachedDataset dataset);
  Result<RankRecord> fetch_aside(const DatasetRecord& candidate, Store& store, bool& damaged);
  Status take_fetched(const RankRecord& flushed, const Level& level, CachedDataset& dataset);
  bool has_remains_of(const Uuid& uuid) const;
  void forget_remains_of(const Uuid& uuid);
  void go_back_to(const DatasetInfo& named);
  void take_current_as_request();

  // what another number of ranks has written (session_elastic.cpp)
  bool is_elastic() const { return settings_.elastic && settings_.fetch; }
  std::vector<CachedPart> recorded_parts(const CachedDataset& dataset);
  ReadRecord read_own_records();
  void offer_what_others_wrote();
  void warn_of_no_copy(const DatasetInfo& dataset, const Error& error);
  Status flush_what_others_wrote(CachedDataset& dataset);
  void flush_datasets_of_others();
  Status restart_in_prefix(const Uuid& uuid);
  Status take_copy(const Uuid& uuid);
  Status refuse_in_favour_of_cached();

  CachedDataset* restart_candidate();
  Status check_ranks();
  Uuid newest_restorable();
  std::vector<std::int64_t> find_named(const std::string& name);
  void drop_old_broadcasts();
  Status open_for_restart(CachedDataset& dataset);
  Status leave_out(CachedDataset& dataset, CachedDataset::State state, const Status& why,
                   const std::string& remedy);
  const CachedDataset* left_out() const;
  Status place_broadcast(const CachedDataset& dataset);
  bool written_by_as_many(const DatasetInfo& dataset) const {
    return dataset.ranks == static_cast<std::uint32_t>(comm_.size());
  }
  std::optional<std::string> find_in_restart(const std::string& path);
  std::optional<std::string> find_anybodys(const CachedDataset& dataset,
                                           const std::string& path) const;
  bool is_broadcast(const std::string& path) const;

  void learn_from_rank_0(bool& due);
  void warn_if_never_due();
  void count(const Status& checkpoint);

  template <class... Args>
  void tell(fmt::format_string<Args...> format, Args&&... args) const {
    if (comm_.rank() == 0) log_.info(format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) const {
    if (comm_.rank() == 0) log_.warning(format, std::forward<Args>(args)...);
  }

  Communicator& comm_;
  Files& files_;
  Clock& clock_;
  Background& background_;
  Log log_;
  const Settings settings_;

  Placement placement_;
  std::vector<Store> stores_;
  std::vector<Level> levels_;
  PrefixIdentity identity_;
  Locks locks_;

  Phase phase_ = Phase::idle;
  std::vector<CachedDataset> datasets_;  ///< newest first, the same on all ranks
  bool restart_done_ = false;
  std::optional<Uuid> went_on_from_;  ///< as SCR_Current has it, since when nothing was made
  std::optional<Uuid> asked_for_;     ///< by SCR_Current, before SCR_Have_restart
  bool fetch_done_ = false;           ///< the prefix directory has been asked
  bool refused_for_now_ = false;      ///< fetch_refused_ is for a reason that may pass
  bool from_scratch_ = false;  ///< the log says that it begins so, although there was a checkpoint
  std::string given_up_;       ///< why the newest checkpoint was removed that this run was offered
  Status fetch_refused_;       ///< what it was asked for cannot be had, and nothing else will do
  Uuid no_copy_told_;          ///< what was told to be in the caches and not to be had
  Uuid left_out_;              ///< what a restart was to begin from, and is good, and could not
  bool flush_wanted_ = false;  ///< of the newest checkpoint
  std::uint64_t last_number_ = 0;
  std::uint64_t last_checkpoint_ = 0;
  bool size_told_ = false;
  bool first_told_ = false;
  bool no_files_told_ = false;
  bool open_elsewhere_reported_ = false;

  /// The dataset being written.
  CachedDataset current_;
  std::size_t current_level_ = 0;
  std::int64_t started_us_ = 0;
  std::int64_t computes_since_us_ = 0;
  Routing routing_;
  /// Of each dataset that is read where it is: the files that others have written.
  std::map<Uuid, KnownNames> known_names_;
  BroadcastFiles broadcast_;
  EventLog events_;
  PrefixSide prefix_;
  ChangeFilter prefix_trouble_;            ///< why nothing can be written there
  bool is_missing_path_reported_ = false;  ///< in a dataset, as the prefix directory is missing
  ChangeFilter refusals_;                  ///< why a restart is refused
  ChangeFilter refused_starts_;            ///< why no dataset can be begun there

  Cadence cadence_;  ///< on rank 0
  Halting halting_;  ///< on rank 0
  Halting::State halting_state_ = Halting::State::goes_on;
  bool never_due_ = false;     ///< SCR_Need_checkpoint has said no, and always will
  bool exit_logged_ = false;   ///< that the program was told to end
  bool no_need_told_ = false;  ///< the last answer of SCR_Need_checkpoint, until acted upon
  bool at_checkpoint_ = true;
};

}  // namespace cairn
