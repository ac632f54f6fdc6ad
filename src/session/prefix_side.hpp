// The job's dealings with its prefix directory. What to flush, and when, is the session's choice;
// what a restart takes is decided in restart/restart_decision.hpp.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "comm/communicator.hpp"
#include "config/settings.hpp"
#include "files/background.hpp"
#include "prefix/carry_out.hpp"
#include "prefix/event_log.hpp"
#include "prefix/flush.hpp"
#include "prefix/flush_plan.hpp"
#include "recovery/cached_dataset.hpp"
#include "restart/restart_decision.hpp"
#include "session/scr_imports.hpp"
#include "topology/placement.hpp"

namespace cairn {

/// All ranks call all member functions in the same order. Rank 0 keeps the books; nothing is made
/// in the prefix directory before there is something to put into it.
class PrefixSide {
 public:
  /// What this rank has in its caches now, whoever wrote it.
  using CachedParts = std::function<std::vector<CachedPart>()>;

  PrefixSide(Communicator& comm, Files& files, Clock& clock, Background& background,
             const Settings& settings, Log log, EventLog& events, CachedParts cached);

  /// At Init, before all else: whether the directory exists. If it does not, rank 0 warns.
  void look_for_directory();
  /// It did not then, and nothing could be copied there since.
  bool is_missing() const { return is_missing_; }

  /// At Init: where an earlier run has left something, takes over and ends what was half done, with
  /// the parts that this rank has in its caches. busy if another job lives there. A prefix
  /// directory that cannot be used now is told, and is no error: the caches are there. But it is
  /// one where it was to be purged.
  Status open(const Placement& placement);
  /// Where it was not there, or could not be used, when it was last asked for: once more; where it
  /// was, what could not be read of it. True if there is news: it is this run's now, or is known
  /// not to be there, else trouble() tells why not; or more is known of it.
  bool open_again();
  bool is_owned() const { return owned_; }

  /// The highest of all datasets there; known on all ranks.
  std::uint64_t last_number() const { return last_number_; }
  std::uint64_t last_checkpoint() const { return last_checkpoint_; }
  std::int64_t newest_us() const { return newest_us_; }
  /// `flushed` is then true of those that are there and not known to be damaged, and of those that
  /// somebody has dropped, which are not to come back; sets `quarantined` and `deleted`. Does
  /// nothing where the directory has not come to be this run's since the last time that this went
  /// well. Where it is not known what was dropped, nothing must be copied there; agreed.
  Status mark_flushed(std::vector<CachedDataset>& datasets);
  /// What was deleted is in the caches of this job no more, but for what is `left`.
  void forget_deleted(const std::vector<CachedDataset>& left);

  /// What is there now mark_flushed() has not told yet: another one has had it since, or has it.
  bool has_news();

  /// For a dataset that is about to be written there: the directory is this job's, and no file of
  /// an older dataset will still be given its name. Where it was away before, it is looked for once
  /// more; where another job has taken it, it is left to that one while it lives: busy. Errors are
  /// agreed.
  Status claim();
  /// Publishes what has been written there since; takes the checksums for `record`, which has all
  /// else. As flush() then. `took`: a file of one of its names was there before.
  /// `open_elsewhere` is as for check_closed().
  Status publish(RankRecord& record, const std::string& label, bool took,
                 std::string& open_elsewhere);

  /// After claim(). Copies a dataset from `store` there; it is current then, if it is a checkpoint.
  /// `cached`: one path for each file. Errors are agreed.
  Status flush(const CachedDataset& dataset, const std::string& store,
               const std::vector<std::string>& cached);

  /// The same for a dataset that another number of ranks has written: what this rank's caches have
  /// of it, in `store`. Whether all its parts are there, and how its records tell of it, is found
  /// first.
  Result<DatasetInfo> find_parts(const DatasetInfo& dataset, const std::vector<CachedPart>& cached,
                                 const ReadRecord& read);
  Status flush_parts(const DatasetInfo& dataset, const std::string& store,
                     const std::vector<CachedPart>& cached, const ReadRecord& read);

  /// Rank 0's: what a restart could come from.
  void tell_facts(RestartFacts& facts);
  /// Imports this dataset of SCR. Errors are agreed.
  Status import_from_scr(const Uuid& dataset);
  /// wrong_ranks if a run would go back to a checkpoint there, begun after `newer_than`, that
  /// another number of ranks has written.
  Status check_ranks(const Uuid& newer_than) const;
  /// Logs, once for each checkpoint that is offered, which of those begun after it are passed over
  /// because they were found damaged, or because too many restarts from them have died. Zeros: none
  /// is offered. Then rank 0 returns why the newest one there is passed over, and logs the others,
  /// unless `is_known`. Empty on other ranks. `tried`: by this run.
  std::string report_passed_over(const Uuid& offered, bool is_known, const std::set<Uuid>& tried);
  /// The record of one that is there.
  std::optional<DatasetRecord> listed(const Uuid& uuid);
  /// Of the newest checkpoint there that nobody has found damaged.
  std::optional<DatasetRecord> newest_sound();
  /// What of SCR could not be read now is read once more.
  void read_scr_again() { scr_.forget_passing(); }
  /// Why it could not be looked into; empty if it could.
  const std::string& trouble() const { return trouble_; }
  Result<RankRecord> fetch(const DatasetRecord& dataset, const RankFolder& into);
  Result<std::vector<RankRecord>> check_in_place(const DatasetRecord& dataset);

  // What became of a dataset; those that are not there are passed over. Trouble is only told.
  void note_fetched(const Uuid& uuid);
  void note_failed(const Uuid& uuid, const std::string& reason);
  /// A restart from it begins; the run may die of it. Of those that are not there too. True if it
  /// was counted.
  bool note_attempt(const DatasetInfo& dataset);
  /// It came to an error, and killed nobody.
  void take_back_attempt(const DatasetInfo& dataset);
  void note_restarted(const DatasetInfo& dataset);

  /// As scr.h has them. not_found if there is none of that name; which it is, the first tells.
  Result<DatasetInfo> current(const std::string& name);
  Status drop(const std::string& name);
  Status remove(const std::string& name);

  /// At Finalize: another job may come.
  void close();

 private:
  Status log_flush(const DatasetInfo& dataset, const std::string& store,
                   const Result<FlushAccount>& account, double seconds);
  double seconds_since(std::int64_t steady_us) const {
    return static_cast<double>(clock_.steady_us() - steady_us) * 1e-6;
  }
  Result<FlushAccount> copy_out(const CachedDataset& dataset,
                                const std::vector<std::string>& cached);
  Status own_if_there();
  Status own();
  void introduce_myself();
  Status take_keeper();
  void let_go_if_closed();
  void tell_rival(const OwnerRecord& rival) const;
  Status tidy_up(const std::vector<CachedPart>* cached);
  Status look_up(const std::vector<CachedDataset>& datasets, Blob& known);
  void forget_attempts(const std::vector<CachedDataset>& datasets);
  template <class Change>
  void change_attempts(const DatasetInfo& dataset, Change change);
  void count_attempt(DatasetRecord& record);
  void carry_attempts_over(const DatasetInfo& dataset);
  void announce_extremes();
  template <class Change>
  void change_record(const Uuid& uuid, Change change);
  void announce_first();
  void tell_of_current(const Uuid& offered, const std::set<Uuid>& tried) const;
  std::string lifted_by(const DatasetRecord& record) const;
  std::string why_passed_over(const DatasetRecord& record, const std::set<Uuid>& tried) const;
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(comm_.size()); }
  const DatasetRecord* find(const std::string& name) const;
  const DatasetRecord* find(const Uuid& uuid) const;
  Result<DatasetRecord> share_record(const std::string& call, const std::string& name);
  void give_names_before_drop();
  Status drop_dataset(const DatasetRecord& record);
  Status remove_dataset(const DatasetRecord& record);
  Status take_out(const DatasetRecord& record);
  Status remove_files_of(const DatasetRecord& record);
  const DatasetRecord* oldest(bool found) const;
  Status purge();
  Status note_purged(const std::vector<DatasetRecord>& purged);
  Status purge_saved();
  Status delete_saved(Keeper& keeper, const std::string& name);
  void tell_saved_unseen(const std::string& name, const Error& why);
  void handle_replaced(const DatasetInfo& dataset, const Result<std::vector<Replaced>>& replaced);
  void mark_again();
  void warn_replaced(const std::vector<Replaced>& replaced);
  void save_listing();
  const DatasetRecord* next_to_go() const;
  Status keep_to_window();
  Status look_again();
  Status settle_older();
  bool is_unsettled() const;
  void tell_of_half_done(const Status& tidied) const;
  Status refuse_unread(const std::string& what, const Uuid& from = {});
  bool read_again();
  void tell_of_damaged(std::size_t told) const;
  std::optional<DatasetRecord> share(const DatasetRecord* record);
  template <class... Args>
  void tell(Severity severity, fmt::format_string<Args...> format, Args&&... args) const {
    if (comm_.rank() != 0) return;
    if (severity == Severity::info)
      log_.info(format, std::forward<Args>(args)...);
    else
      log_.warning(format, std::forward<Args>(args)...);
  }

  Communicator& comm_;
  Files& files_;
  Clock& clock_;
  Background& background_;
  const Settings& settings_;
  Log log_;
  EventLog& events_;
  const CachedParts cached_;
  Site site_;
  ScrImports scr_;
  bool is_missing_ = false;
  bool owned_ = false;
  bool has_news_ = false;    ///< for mark_flushed()
  bool was_closed_ = false;  ///< another one has taken it over from this run
  bool told_saved_unseen_ = false;
  bool replaced_told_ = false;
  std::set<std::string> unmarked_;  ///< folders of datasets, for mark_again()
  OwnerRecord me_;                  ///< on rank 0, as the two below; made when it is first needed
  Status refusal_;                  ///< why it could not be had
  std::int64_t ask_again_us_ = 0;   ///< of steady time: before that a rival lives
  std::optional<Keeper> keeper_;    ///< on rank 0, where owned
  std::unique_ptr<Repeated> heartbeat_;  ///< on rank 0, where owned

  std::uint64_t last_number_ = 0;
  std::uint64_t last_checkpoint_ = 0;
  std::int64_t newest_us_ = 0;
  std::optional<DatasetRecord> first_;   ///< what a restart would try first
  std::optional<Uuid> passed_over_for_;  ///< the offer that report_passed_over() was last given
  std::string trouble_;
};

}  // namespace cairn
