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
    return fail(Code::wrong_state, "{} in state {}: SCR_Finalize was called before", call,
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
    return fail(Code::wrong_state,
                "{} in state {}: call {} first (if the program did, that call failed)", call,
                state_name(), bracket_of(required).start);
  const std::string label = phase_ == Phase::restart
                                ? "the restart from " + restart_candidate()->label()
                                : current_.label();
  return fail(Code::wrong_state, "{} in state {}: {} is not completed. Call {} first", call,
              state_name(), label, bracket_of(phase_).complete);
}

Status Session::refuse(std::string_view call, std::string_view legal) {
  CAIRN_TRY(check_same_call(comm_, call, state_name()));
  return fail(Code::wrong_state, "{} is not allowed in state {}, only in state {}", call,
              state_name(), legal);
}

}  // namespace cairn
