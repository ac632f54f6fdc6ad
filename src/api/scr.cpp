// scr.h: each call translates its arguments, asks the Session, and translates the answer.

#include "scr.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "api/process.hpp"

namespace {

using cairn::Code;
using cairn::process;
using cairn::Result;
using cairn::Session;
using cairn::Status;

static_assert(CAIRN_E_DISABLED == static_cast<int>(Code::disabled));
static_assert(SCR_FLAG_OUTPUT == cairn::flag_output && SCR_FLAG_CHECKPOINT == cairn::flag_checkpoint);

enum class Kind { collective, local };

int code_of(const cairn::Error& error, Kind kind) {
  // A disabled library is silent: the program was told once, by SCR_Init.
  if (error.code != Code::disabled && (kind == Kind::local || process().rank() == 0))
    process().log().error("{}", error.text);
  return static_cast<int>(error.code);
}

/// Runs a call; no exception of the standard library (out of memory, say) may leave it.
template <class Call>
int guarded(Kind kind, Call call) noexcept {
  try {
    const Status status = call();
    return status ? SCR_SUCCESS : code_of(status.error(), kind);
  } catch (const std::exception& error) {
    process().log().error("rank {}: {}", process().rank(), error.what());
    return CAIRN_E_IO;
  }
}

/// A call on the running session.
template <class Call>
int with_session(const char* name, Kind kind, Call call) noexcept {
  return guarded(kind, [&]() -> Status {
    CAIRN_ASSIGN(Session * session, process().session(name));
    return call(*session);
  });
}

Status copy_out(const std::string& text, char* out, std::size_t size, const char* call) {
  if (out == nullptr) return {};
  if (text.size() >= size)
    return cairn::fail(Code::bad_argument, "{}: {} needs {} bytes, the buffer has {}", call, text,
                       text.size() + 1, size);
  std::memcpy(out, text.c_str(), text.size() + 1);
  return {};
}

Status null_argument(const char* call, const char* argument) {
  return cairn::fail(Code::bad_argument, "{}: {} is NULL", call, argument);
}

int answer_flag(const char* name, int* flag, Result<bool> (Session::*question)()) {
  if (flag == nullptr) return guarded(Kind::local, [&] { return null_argument(name, "flag"); });
  return with_session(name, Kind::collective, [&](Session& session) -> Status {
    CAIRN_ASSIGN(const bool answer, (session.*question)());
    *flag = answer ? 1 : 0;
    return {};
  });
}

int by_name(const char* call, const char* name, Status (Session::*action)(const std::string&)) {
  return with_session(call, Kind::collective, [&](Session& session) {
    return (session.*action)(name == nullptr ? "" : name);
  });
}

/// SCR_HALT_EXIT=1: where the run is to halt, ends it, after the checkpoint that was just made.
void exit_if_halted() {
  if (!process().may_exit()) return;
  int halted = 0;
  if (SCR_Should_exit(&halted) != SCR_SUCCESS || halted == 0) return;
  if (process().rank() == 0) process().log().info("the run is halted (SCR_HALT_EXIT=1)");
  SCR_Finalize();
  MPI_Finalize();
  std::exit(EXIT_SUCCESS);
}

int complete(const char* name, int valid, Status (Session::*action)(bool)) {
  const int rc = with_session(name, Kind::collective,
                              [&](Session& session) { return (session.*action)(valid != 0); });
  if (rc == SCR_SUCCESS) exit_if_halted();
  return rc;
}

}  // namespace

int SCR_Init(void) {
  const int rc = guarded(Kind::collective, [] { return process().init(); });
  if (rc == SCR_SUCCESS) exit_if_halted();
  return rc;
}

int SCR_Finalize(void) {
  return guarded(Kind::collective, [] { return process().finalize(); });
}

const char* SCR_Config(const char* config) {
  if (config == nullptr) return nullptr;
  char* answer = nullptr;
  guarded(Kind::local, [&]() -> Status {
    if (const auto value = process().configure(config)) answer = ::strdup(value->c_str());
    return {};
  });
  return answer;
}

const char* SCR_Configf(const char* format, ...) {
  char text[4 * SCR_MAX_FILENAME];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof text) {
    guarded(Kind::local, [&] {
      return Status(cairn::fail(Code::bad_argument, "SCR_Configf: the text has {} bytes, {} are allowed",
                                length, sizeof text - 1));
    });
    return nullptr;
  }
  return SCR_Config(text);
}

char* SCR_Get_version(void) {
  static char version[] = SCR_VERSION;
  return version;
}

int SCR_Should_exit(int* flag) { return answer_flag("SCR_Should_exit", flag, &Session::should_exit); }

int SCR_Need_checkpoint(int* flag) {
  if (flag != nullptr) *flag = 0;
  return answer_flag("SCR_Need_checkpoint", flag, &Session::need_checkpoint);
}

int SCR_Route_file(const char* name, char* file) {
  constexpr const char* call = "SCR_Route_file";
  if (name == nullptr || file == nullptr)
    return guarded(Kind::local, [&] { return null_argument(call, name == nullptr ? "name" : "file"); });
  const int rc = with_session(call, Kind::local, [&](Session& session) -> Status {
    CAIRN_ASSIGN(const std::string path, session.route_file(process().absolute(name)));
    return copy_out(session.state_name() == "IDLE" ? name : path, file, SCR_MAX_FILENAME, call);
  });
  // A program that runs without checkpoints still opens its files.
  if (rc == CAIRN_E_DISABLED)
    guarded(Kind::local, [&] { return copy_out(name, file, SCR_MAX_FILENAME, call); });
  return rc;
}

int SCR_Have_restart(int* flag, char* name) {
  constexpr const char* call = "SCR_Have_restart";
  if (flag == nullptr) return guarded(Kind::local, [&] { return null_argument(call, "flag"); });
  *flag = 0;
  return with_session(call, Kind::collective, [&](Session& session) -> Status {
    CAIRN_ASSIGN(const auto found, session.have_restart());
    if (!found) return {};
    *flag = 1;
    return copy_out(*found, name, SCR_MAX_FILENAME, call);
  });
}

int SCR_Start_restart(char* name) {
  constexpr const char* call = "SCR_Start_restart";
  return with_session(call, Kind::collective, [&](Session& session) -> Status {
    CAIRN_ASSIGN(const std::string found, session.start_restart());
    return copy_out(found, name, SCR_MAX_FILENAME, call);
  });
}

int SCR_Complete_restart(int valid) {
  return with_session("SCR_Complete_restart", Kind::collective,
                      [&](Session& session) { return session.complete_restart(valid != 0); });
}

int SCR_Start_checkpoint(void) {
  return with_session("SCR_Start_checkpoint", Kind::collective,
                      [](Session& session) { return session.start_checkpoint(); });
}

int SCR_Complete_checkpoint(int valid) {
  return complete("SCR_Complete_checkpoint", valid, &Session::complete_checkpoint);
}

int SCR_Start_output(const char* name, int flags) {
  return with_session("SCR_Start_output", Kind::collective, [&](Session& session) {
    return session.start_output(name == nullptr ? "" : name, static_cast<std::uint32_t>(flags));
  });
}

int SCR_Complete_output(int valid) {
  return complete("SCR_Complete_output", valid, &Session::complete_output);
}

int SCR_Current(const char* name) { return by_name("SCR_Current", name, &Session::current); }
int SCR_Drop(const char* name) { return by_name("SCR_Drop", name, &Session::drop); }
int SCR_Delete(const char* name) { return by_name("SCR_Delete", name, &Session::remove); }

// --- the calls of 2009: one file at a time, no brackets ---

int SCR_Route(const char* name, char* file, int size) {
  constexpr const char* call = "SCR_Route";
  if (name == nullptr || file == nullptr || size <= 0)
    return guarded(Kind::local, [&] { return null_argument(call, name == nullptr ? "name" : "file"); });
  const auto bytes = static_cast<std::size_t>(size);
  const int rc = with_session(call, Kind::local, [&](Session& session) -> Status {
    const std::string absolute = process().absolute(name);
    if (session.state_name() != "IDLE") {
      CAIRN_ASSIGN(const std::string path, session.route_file(absolute));
      return copy_out(path, file, bytes, call);
    }
    const std::string loaded = session.route_loaded(absolute);
    return copy_out(loaded == absolute ? name : loaded, file, bytes, call);
  });
  if (rc == CAIRN_E_DISABLED) guarded(Kind::local, [&] { return copy_out(name, file, bytes, call); });
  return rc;
}

int SCR_Start(const char* file) {
  if (file == nullptr) return guarded(Kind::local, [] { return null_argument("SCR_Start", "file"); });
  return SCR_Start_checkpoint();
}

int SCR_Complete(const char* file, int valid) {
  if (file == nullptr) return guarded(Kind::local, [] { return null_argument("SCR_Complete", "file"); });
  return SCR_Complete_checkpoint(valid);
}
