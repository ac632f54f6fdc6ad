// Which calls of a Session are allowed when: the same verdict on all ranks.

#include <array>

#include "session/same_call.hpp"
#include "session/session.hpp"

namespace cairn {

std::string_view Session::name_of_phase(Phase phase) {
  static constexpr std::array<std::string_view, 5> names = {"IDLE", "RESTART", "CHECKPOINT",
                                                            "OUTPUT", "UNINIT"};
  return names[static_cast<std::size_t>(phase)];
}

std::string_view Session::state_name() const { return name_of_phase(phase_); }

/// All ranks are in the same call, with the same arguments, in the state that it needs. One
/// allreduce, which takes the largest of `also` along.
Status Session::enter(std::string_view call, Phase required, std::string_view arguments,
                      std::span<std::int64_t> also) {
  if (phase_ == Phase::ended)
    return fail(Code::wrong_state, "{} in state {}: SCR_Finalize has been called", call,
                state_name());
  CAIRN_TRY(check_same_call(comm_, call, state_name(), arguments, also));
  events_.called();
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
Status Session::wrong_state(std::string_view call, Phase required) {
  const auto bracket_of = [](Phase phase) { return brackets[static_cast<std::size_t>(phase) - 1]; };
  if (phase_ == Phase::idle)
    return fail(Code::wrong_state, "{} in state {}: {} before it is missing, or has failed", call,
                state_name(), bracket_of(required).start);
  const Bracket open = bracket_of(phase_);
  const std::string label =
      phase_ == Phase::restart ? restart_candidate()->label() : current_.label();
  return fail(
      Code::wrong_state,
      "{} in state {}: {} before it is missing, as {} began {}, and nothing has completed it", call,
      state_name(), open.complete, open.start, label);
}

Status Session::refuse(std::string_view call, std::string_view legal) {
  CAIRN_TRY(check_same_call(comm_, call, state_name()));
  return fail(Code::wrong_state, "{} in state {} is allowed only in state {}", call, state_name(),
              legal);
}

}  // namespace cairn
