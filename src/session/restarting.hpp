// Answers which checkpoint the program restarts from, and makes it ready: carries out the decisions
// of restart/restart_decision.hpp.
#pragma once

#include <optional>
#include <string>

#include "base/once.hpp"
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

  /// At Init: imports a checkpoint of SCR if a restart would take it first.
  void import_what_comes_next(Communicator& comm);
  /// SCR_Have_restart: afterwards candidate() is what the program is offered. If this fails, the
  /// run must not start. Errors are agreed.
  Status find(Communicator& comm);
  /// Counts the attempt, checks every block, and opens the candidate for reading. If this fails,
  /// the run does not try this candidate again. Errors are agreed.
  Status begin(Communicator& comm);
  /// The restart has ended. If the program could not use the candidate (`verdict`), removes it.
  void end(Communicator& comm, const Status& verdict);

  /// What the program is, or would be, offered; null: nothing.
  CachedDataset* candidate();
  const CachedDataset* candidate() const;
  /// Fails with wrong_ranks if another number of ranks wrote what comes first.
  Status check_ranks() const;
  /// Why the run must not start: the error of find().
  const Status& refusal() const { return refusal_; }

  /// SCR_Current: the program continues from `named`, or (null) from nothing. Before
  /// SCR_Have_restart this asks for that checkpoint.
  void go_back_to(Communicator& comm, const DatasetInfo* named);
  /// The program has made a checkpoint.
  void note_checkpoint();
  /// The next find() tries again what may succeed now.
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
  bool is_there(Communicator& comm, const Uuid& dataset);
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

  bool is_over_ = false;               ///< the program has restarted, or continued without
  bool is_answered_ = false;           ///< SCR_Have_restart has named a checkpoint, or none
  std::optional<Uuid> went_on_from_;   ///< by SCR_Current; no checkpoint was made since
  std::optional<Uuid> asked_for_;      ///< by SCR_Current, before SCR_Have_restart
  RestartAttempts attempts_;           ///< what was done to answer SCR_Have_restart
  Status refusal_;                     ///< why the run must not start
  bool is_refusal_transient_ = false;  ///< the reason of refusal_ is transient
  std::string given_up_;               ///< why the newest offered checkpoint was removed
  Once from_scratch_;                  ///< the log says that the run starts from scratch
  ChangeFilter no_copy_;               ///< the dataset that the caches have, but not usable
  ChangeFilter refusals_;              ///< why a restart is refused
  ChangeFilter current_ignored_;       ///< why SCR_CURRENT has no effect; on rank 0
};

}  // namespace cairn
