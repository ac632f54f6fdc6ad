// How a C call reaches the session, and how its error reaches the program and the user.
#pragma once

#include <exception>
#include <string>

#include "api/process.hpp"
#include "scr.h"

namespace cairn {

enum class CallKind { collective, local };

/// Prints the error, unless it has been logged, and returns its code.
int code_of(const Error& error, CallKind kind, const char* call);

/// Runs a call, and converts exceptions of the standard library, such as out of memory, to error
/// codes.
template <class Action>
int guarded(const char* call, CallKind kind, Action action) noexcept {
  try {
    const Status status = action();
    return status ? SCR_SUCCESS : code_of(status.error(), kind, call);
  } catch (const std::exception& error) {
    process().log().error("rank {}: {}: {}", process().rank(), call, error.what());
    return CAIRN_E_IO;
  }
}

/// A call on the running session.
template <class Action>
int with_session(const char* call, CallKind kind, Action action) noexcept {
  return guarded(call, kind, [&]() -> Status {
    CAIRN_ASSIGN(Session * session, kind == CallKind::collective ? process().session_for_all(call)
                                                                 : process().session(call));
    return action(*session);
  });
}

inline Status fail_on_null(const char* call, const void* argument, const char* name) {
  if (argument != nullptr) return {};
  return fail(Code::bad_argument, "{}: {} is NULL", call, name);
}

}  // namespace cairn
