// cairn.h, and its calls for Fortran: each translates its arguments, calls the Session, and
// translates the result.

#include "cairn.h"

#include "api/calls.hpp"
#include "api/fortran_text.hpp"

namespace {

using cairn::CallKind;
using cairn::fail_on_null;
using cairn::Safety;
using cairn::Session;
using cairn::Status;
using cairn::with_session;

static_assert(CAIRN_STATE_NONE == static_cast<int>(Safety::none) &&
              CAIRN_STATE_WRITING == static_cast<int>(Safety::writing) &&
              CAIRN_STATE_WRITTEN == static_cast<int>(Safety::written) &&
              CAIRN_STATE_PROTECTED == static_cast<int>(Safety::protected_) &&
              CAIRN_STATE_FLUSHED == static_cast<int>(Safety::flushed));

}  // namespace

int Cairn_Dataset_state(const char* name, int* state) {
  constexpr const char* call = "Cairn_Dataset_state";
  if (state != nullptr) *state = CAIRN_STATE_NONE;
  return with_session(call, CallKind::local, [&](Session& session) -> Status {
    CAIRN_TRY(fail_on_null(call, name, "name"));
    CAIRN_TRY(fail_on_null(call, state, "state"));
    *state = static_cast<int>(session.safety().of(name));
    return {};
  });
}

int Cairn_Wait(const char* name, int state, double seconds) {
  bool is_reached = false;
  const int rc = with_session("Cairn_Wait", CallKind::collective, [&](Session& session) -> Status {
    CAIRN_ASSIGN(is_reached, session.safety().wait(name == nullptr ? "" : name,
                                                   static_cast<Safety>(state), seconds));
    return {};
  });
  return rc == SCR_SUCCESS && !is_reached ? CAIRN_TIMEOUT : rc;
}

int Cairn_Computing_begin(void) {
  return with_session("Cairn_Computing_begin", CallKind::local, [](Session& session) -> Status {
    session.pace().begin_computing();
    return {};
  });
}

int Cairn_Computing_end(void) {
  return with_session("Cairn_Computing_end", CallKind::local, [](Session& session) -> Status {
    session.pace().end_computing();
    return {};
  });
}

// The module cairn. The symbols are those of Fortran compilers on Linux, and lengths of texts come
// after the other arguments.

#define CAIRN_FORTRAN extern "C" CAIRN_EXPORT void

CAIRN_FORTRAN cairn_dataset_state_(const char* name, int* state, int* error, std::size_t length) {
  *error = Cairn_Dataset_state(cairn::trimmed(name, length).c_str(), state);
}
CAIRN_FORTRAN cairn_wait_(const char* name, const int* state, const double* seconds, int* error,
                          std::size_t length) {
  *error = Cairn_Wait(cairn::trimmed(name, length).c_str(), *state, *seconds);
}
CAIRN_FORTRAN cairn_computing_begin_(int* error) { *error = Cairn_Computing_begin(); }
CAIRN_FORTRAN cairn_computing_end_(int* error) { *error = Cairn_Computing_end(); }
