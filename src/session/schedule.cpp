#include "session/schedule.hpp"

#include <array>
#include <utility>

namespace cairn {

void Schedule::begin() {
  if (run_.rank == 0) halting_.begin();
  cadence_ = Cadence(run_.settings, run_.clock.steady_us());
}

void Schedule::watch() {
  if (run_.rank == 0) halting_.watch(run_.background);
}

void Schedule::end() {
  if (run_.rank == 0) halting_.end();
}

void Schedule::note_failed_start() {
  if (run_.rank == 0) cadence_.failed(run_.clock.steady_us());
}

void Schedule::note_complete(const Status& done, bool is_checkpoint, std::int64_t started_us) {
  at_checkpoint_ = done && is_checkpoint;
  if (!is_checkpoint) return;
  last_answer_was_no_ = false;
  if (!done) return note_failed_start();
  if (run_.rank != 0) return;
  cadence_.made(started_us, run_.clock.steady_us());
  halting_.count_checkpoint();
}

/// Rank 0 knows whether the run is to stop, and then all do. `due` goes from rank 0 to all as well.
void Schedule::learn_from_rank_0(Communicator& comm, bool& due) {
  std::array<std::int64_t, 2> known{};
  if (run_.rank == 0) known = {static_cast<std::int64_t>(halting_.look()), due ? 1 : 0};
  comm.bcast(mutable_bytes_of(known), 0);
  halting_state_ = static_cast<Halting::State>(known[0]);
  due = known[1] != 0;
}

Result<bool> Schedule::need_checkpoint() {
  CAIRN_TRY(calls_.enter("SCR_Need_checkpoint", Phase::idle));
  calls_.finish_protection(Calls::Waits::no);
  bool due = run_.rank == 0 && cadence_.due(run_.clock.steady_us(), late_.is_running());
  learn_from_rank_0(calls_.comm(), due);
  const bool goes_on = halting_state_ == Halting::State::goes_on;
  const bool needed = goes_on ? due : !stops_at_once();
  if (!needed && goes_on) warn_if_never_due();
  last_answer_was_no_ = !needed;
  return needed;
}

/// Once in a run.
void Schedule::warn_if_never_due() {
  if (cadence_.is_ever_due() || !never_due_.is_first()) return;
  run_.shared_log.warning(
      "SCR_Need_checkpoint says no until the job is asked to stop, because none of "
      "SCR_CHECKPOINT_INTERVAL, SCR_CHECKPOINT_SECONDS and SCR_CHECKPOINT_OVERHEAD is set. A "
      "program that relies on it writes no checkpoint, and a failure loses all that it has "
      "computed. Set one of them: for example, SCR_CHECKPOINT_SECONDS=600 asks for a checkpoint "
      "every ten minutes");
}

/// A request that comes between the two questions waits for the next SCR_Need_checkpoint: else a
/// program that has just got the answer to go on would stop without its last checkpoint.
Result<bool> Schedule::should_exit() {
  CAIRN_TRY(calls_.enter("SCR_Should_exit", Phase::idle));
  bool due = false;
  learn_from_rank_0(calls_.comm(), due);
  const bool needs_one_first = std::exchange(last_answer_was_no_, false) && !stops_at_once();
  const bool exits = halting_state_ != Halting::State::goes_on && !needs_one_first;
  if (exits) log_exit();
  return exits;
}

Result<bool> Schedule::may_end_here() {
  CAIRN_TRY(calls_.enter("SCR_Should_exit", Phase::idle));
  bool due = false;
  learn_from_rank_0(calls_.comm(), due);
  return stops_at_once() || (halting_state_ != Halting::State::goes_on && at_checkpoint_);
}

/// Job control takes a program that ends without it for one that finished by itself.
void Schedule::log_exit() {
  if (exit_.is_first()) run_.events.happened("SHOULD_EXIT");
}

}  // namespace cairn
