// What every call of scr.h and cairn.h does first: which call is allowed when, and what it waits
// for.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "session/flushing.hpp"
#include "session/late_protection.hpp"

namespace cairn {

/// The states of a session, between its calls.
enum class Phase { idle, restart, checkpoint, output, ended };

/// "CHECKPOINT"; for messages.
std::string_view name_of(Phase phase);

/// Session and its parts with calls of their own share this. The calls of scr.h have no
/// communicator, so this keeps the one of Init. A function is collective unless it says "Local".
class Calls {
 public:
  /// All must outlive this.
  Calls(Communicator& comm, ThisRun& run, CachedDatasets& cached, Flushing& flushing,
        LateProtection& late)
      : comm_(comm), run_(run), cached_(cached), flushing_(flushing), late_(late) {}

  /// All ranks are in the same call, with the same arguments, in the state that it needs; else the
  /// same error on all. One allreduce, which takes the largest of `also` along.
  Status enter(std::string_view call, Phase required, std::string_view arguments = "",
               std::span<std::int64_t> also = {});
  /// As enter(), for a call in IDLE that uses the prefix directory: nothing goes on behind the
  /// program any more, and the directory answers.
  Status enter_alone(std::string_view call, std::string_view arguments = "");

  /// What a call may wait for that takes in a dataset behind which work goes on.
  enum class Waits { no, for_protection, for_copies };
  /// Every call that depends on which datasets are protected comes here first. Begins the copy of
  /// one that is protected now; where that has to wait and may not, a later call does so.
  void finish_protection(Waits waits);
  /// Local. The error of a dataset that an earlier call has completed. A call that fails itself
  /// says so first.
  Status with_late_failure(Status status);
  /// Local. The error of this call has said so.
  void forget_late_failure() { late_failure_ = {}; }

  /// Local. Not back to IDLE: `dataset` is what the program writes or reads, for messages.
  void go_to(Phase phase, std::string dataset = "");
  /// Local.
  Phase phase() const { return phase_; }
  /// Local.
  bool is_writing() const { return phase_ == Phase::checkpoint || phase_ == Phase::output; }
  /// Local.
  Communicator& comm() const { return comm_; }

 private:
  Status wrong_state(std::string_view call, Phase required) const;
  Status begin_copy(bool may_wait);

  Communicator& comm_;
  ThisRun& run_;
  CachedDatasets& cached_;
  Flushing& flushing_;
  LateProtection& late_;

  Phase phase_ = Phase::idle;
  std::string dataset_;               ///< which the program writes or reads
  Status late_failure_;               ///< of a dataset that an earlier call has completed
  Uuid unprotected_;                  ///< it says that this one cannot be protected; or none
  std::optional<Uuid> to_be_copied_;  ///< it is protected since a call that could not wait
};

}  // namespace cairn
