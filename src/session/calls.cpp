#include "session/calls.hpp"

#include <array>
#include <utility>

#include "session/same_call.hpp"

namespace cairn {

std::string_view name_of(Phase phase) {
  static constexpr std::array<std::string_view, 5> names = {"IDLE", "RESTART", "CHECKPOINT",
                                                            "OUTPUT", "UNINIT"};
  return names[static_cast<std::size_t>(phase)];
}

void Calls::go_to(Phase phase, std::string dataset) {
  phase_ = phase;
  dataset_ = std::move(dataset);
}

Status Calls::enter(std::string_view call, Phase required, std::string_view arguments,
                    std::span<std::int64_t> also) {
  if (phase_ == Phase::ended)
    return fail(Code::wrong_state, "{} in state {}: SCR_Finalize was called before", call,
                name_of(phase_));
  CAIRN_TRY(check_same_call(comm_, call, name_of(phase_), arguments, also));
  run_.events.called();
  flushing_.copies().take_in();
  return phase_ == required ? Status{} : wrong_state(call, required);
}

namespace {

struct Bracket {
  std::string_view start;
  std::string_view complete;
};

/// By phase, from RESTART on.
constexpr std::array<Bracket, 3> brackets = {{{"SCR_Start_restart", "SCR_Complete_restart"},
                                              {"SCR_Start_checkpoint", "SCR_Complete_checkpoint"},
                                              {"SCR_Start_output", "SCR_Complete_output"}}};

}  // namespace

/// Names the call that is missing before `call`.
Status Calls::wrong_state(std::string_view call, Phase required) const {
  const auto bracket_of = [](Phase phase) { return brackets[static_cast<std::size_t>(phase) - 1]; };
  if (phase_ == Phase::idle)
    return fail(Code::wrong_state,
                "{} in state {}: call {} first (if the program did, that call failed)", call,
                name_of(phase_), bracket_of(required).start);
  return fail(Code::wrong_state, "{} in state {}: {} is not completed. Call {} first", call,
              name_of(phase_), dataset_, bracket_of(phase_).complete);
}

Status Calls::enter_alone(std::string_view call, std::string_view arguments) {
  CAIRN_TRY(enter(call, Phase::idle, arguments));
  finish_protection(Waits::for_copies);
  CAIRN_TRY(flushing_.wait_for_copies(comm_));
  return flushing_.wait_for_answer(comm_);
}

void Calls::finish_protection(Waits waits) {
  const bool is_last = phase_ == Phase::ended;
  const auto end = late_.take_in(comm_, waits != Waits::no, is_last);
  const bool is_retry = end && end->is_retry;
  Status over = end ? end->protected_ : Status{};
  if (end && over) to_be_copied_ = end->dataset.uuid;
  // When the run ends all that is due is begun, within the time that is left.
  if (over && to_be_copied_ && !is_last) over = begin_copy(waits == Waits::for_copies);
  // A try that fails for want of room once more is no news; one that loses the dataset is.
  const bool is_known = !over && is_retry && !is_last && late_.waits_for_room();
  if (is_known || (over && !is_retry)) return;
  late_failure_ = std::move(over);
  unprotected_ = end && !end->protected_ ? end->dataset.uuid : Uuid{};
}

Status Calls::begin_copy(bool may_wait) {
  const CachedDataset* found = cached_.find(*to_be_copied_);
  if (found == nullptr) {
    to_be_copied_.reset();
    return {};
  }
  const CachedDataset dataset = *found;
  Flushing::Flushed flushed = flushing_.flush_after(comm_, dataset, may_wait);
  if (!flushed.is_left) to_be_copied_.reset();
  return std::move(flushed.status);
}

Status Calls::with_late_failure(Status status) {
  const CachedDataset* unprotected = cached_.find(unprotected_);
  if (unprotected != nullptr && unprotected->flushed()) late_failure_ = {};
  return status ? std::exchange(late_failure_, Status{}) : status;
}

}  // namespace cairn
