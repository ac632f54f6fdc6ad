// When a checkpoint is due, and whether the run is to stop.
#pragma once

#include "base/once.hpp"
#include "session/cadence.hpp"
#include "session/calls.hpp"
#include "session/halting.hpp"

namespace cairn {

/// What the program asks between its steps. These functions are calls as those of Session are, and
/// the others are local: they may be called on every rank, but only rank 0 does something.
class Schedule {
 public:
  /// All must outlive this.
  Schedule(Calls& calls, ThisRun& run, const LateProtection& late)
      : calls_(calls),
        run_(run),
        late_(late),
        cadence_(run.settings, run.clock.steady_us()),
        halting_(run.files, run.clock, run.settings, run.own_log, run.events) {}

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

  /// The run begins.
  void begin();
  /// From here on a thread reads the halt file; it is ended by stop_watch().
  void watch();
  void stop_watch() { halting_.stop_watch(); }
  /// No checkpoint could be begun.
  void note_failed_start();
  /// What a dataset has come to that was begun at `started_us`.
  void note_complete(const Status& done, bool is_checkpoint, std::int64_t started_us);
  /// How long (us) the run may wait for its copies at its end; negative: as long as it takes.
  std::int64_t time_for_copies_us() { return run_.rank == 0 ? halting_.time_for_copies_us() : 0; }
  /// The run has come to its end.
  void end();

 private:
  void learn_from_rank_0(Communicator& comm, bool& due);
  void warn_if_never_due();

  Calls& calls_;
  ThisRun& run_;
  const LateProtection& late_;

  Cadence cadence_;  ///< on rank 0
  Halting halting_;  ///< on rank 0
  Halting::State halting_state_ = Halting::State::goes_on;
  Once never_due_;                   ///< SCR_Need_checkpoint has said no, and always will
  Once exit_;                        ///< log_exit()
  bool last_answer_was_no_ = false;  ///< the last answer of SCR_Need_checkpoint, until acted upon
  bool at_checkpoint_ = true;
};

}  // namespace cairn
