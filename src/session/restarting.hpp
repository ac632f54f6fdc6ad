// Answers which checkpoint the program restarts from, and gets it ready: carries out what
// restart/restart_decision.hpp decides.
#pragma once

#include <optional>
#include <string>

#include "session/fetching.hpp"
#include "session/flushing.hpp"

namespace cairn {

/// Functions with a communicator are collective.
class Restarting {
 public:
  /// All must outlive this.
  Restarting(ThisRun& run, CachedDatasets& cached, PrefixSide& prefix, Flushing& flushing,
             RestartFiles& files)
      : run_(run),
        cached_(cached),
        prefix_(prefix),
        flushing_(flushing),
        files_(files),
        fetching_(run, cached, prefix, files) {}

  /// At Init: what SCR left comes into the listing as soon as a restart would take it.
  void import_what_comes_next(Communicator& comm);
  /// SCR_Have_restart: candidate() is what the program is offered then. Errors are agreed: the run
  /// must not start.
  Status find(Communicator& comm);
  /// Counts the attempt, checks every block, and opens the candidate for reading. Where that fails
  /// it is out for this run. Errors are agreed.
  Status begin(Communicator& comm);
  /// The program has restarted from the candidate, if `verdict` says so; else it is removed.
  void end(Communicator& comm, const Status& verdict);

  /// What the program is, or would be, offered; null if that is nothing.
  CachedDataset* candidate();
  const CachedDataset* candidate() const;
  /// wrong_ranks: nothing may be begun in the place of what another number of ranks has written.
  Status check_ranks() const;
  /// Why the run must not start; as find() had it.
  const Status& refusal() const { return refusal_; }

  /// The program goes on from this one, as SCR_Current has it, or (null) from nothing. True if this
  /// may be how it asks for a checkpoint.
  void go_back_to(Communicator& comm, const DatasetInfo* named);
  /// It has made a checkpoint.
  void note_checkpoint();
  /// The next find() tries again what was tried, where that may help.
  void allow_retries();
  /// After a dataset was removed or dropped: it may be the one for which the run must not start.
  void reconsider_refusal() {
    if (!refusal_) allow_retries();
  }

 private:
  RestartDecision decide(Communicator& comm);
  void warn_if_current_is_ignored();
  RestartFacts facts();
  void carry_out(Communicator& comm, const RestartDecision& decision);
  Status prepare(Communicator& comm, const RestartDecision& decision);
  Status take_from_prefix(Communicator& comm, const RestartDecision& decision);
  Status refuse(const RestartDecision& refusal);
  void take_current_as_request();
  void look_for_prefix_again(Communicator& comm);
  Status offer_copy(Communicator& comm, CachedDataset& dataset);
  bool note_attempt(Communicator& comm, const DatasetInfo& dataset);
  Status open(Communicator& comm, CachedDataset& dataset);
  Status open_copy(Communicator& comm, const Uuid& uuid);
  Status take_copy(Communicator& comm, const Uuid& uuid);
  Status leave_out(Communicator& comm, CachedDataset& dataset, CacheState state, const Status& why,
                   const std::string& remedy);
  void report_what_is_passed_over();
  void warn_from_scratch(const std::string& why);
  std::string what_caches_lost() const;
  Uuid newest_restorable() const;

  ThisRun& run_;
  CachedDatasets& cached_;
  PrefixSide& prefix_;
  Flushing& flushing_;
  RestartFiles& files_;
  Fetching fetching_;

  bool is_over_ = false;               ///< the program has restarted, or has gone on without
  bool is_answered_ = false;           ///< SCR_Have_restart has named a checkpoint, or none
  std::optional<Uuid> went_on_from_;   ///< as SCR_Current has it, since when nothing was made
  std::optional<Uuid> asked_for_;      ///< by SCR_Current, before SCR_Have_restart
  RestartAttempts attempts_;           ///< what was done to answer SCR_Have_restart
  Status refusal_;                     ///< why the run must not start
  bool is_refusal_transient_ = false;  ///< the reason of refusal_ may pass
  std::string given_up_;               ///< why the newest checkpoint was removed that was offered
  bool is_from_scratch_told_ = false;  ///< the log says that it begins so
  Uuid no_copy_told_;                  ///< what was told to be in the caches and not to be had
  ChangeFilter refusals_;              ///< why a restart is refused
  ChangeFilter current_ignored_;       ///< why SCR_CURRENT has no effect; on rank 0
};

}  // namespace cairn
