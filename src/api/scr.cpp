// scr.h: each call translates its arguments, asks the Session, and translates the answer.

#include "scr.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "api/configure.hpp"
#include "api/process.hpp"

namespace {

using cairn::Code;
using cairn::process;
using cairn::Result;
using cairn::Session;
using cairn::Status;

static_assert(CAIRN_E_DISABLED == static_cast<int>(Code::disabled));
static_assert(CAIRN_E_NOT_COPIED == static_cast<int>(Code::not_copied));
static_assert(SCR_FLAG_OUTPUT == cairn::flag_output &&
              SCR_FLAG_CHECKPOINT == cairn::flag_checkpoint);

enum class Kind { collective, local };

/// The error as one line that names the call and, where it is one rank's own, the rank.
std::string line_of(const cairn::Error& error, Kind kind, const char* call) {
  const std::string whose = kind == Kind::local ? fmt::format("rank {}: ", process().rank()) : "";
  // These name the calls that the ranks made, which need not be this one.
  const bool names_call = error.code == Code::wrong_state || error.code == Code::differs;
  const std::string text = process().text_of(error);
  if (names_call || error.text.starts_with(call)) return whose + text;
  return fmt::format("{}{}: {}", whose, call, text);
}

int code_of(const cairn::Error& error, Kind kind, const char* call) {
  // A disabled library is silent: SCR_Init has reported why.
  const bool is_known = error.code == Code::disabled || error.is_reported;
  if (!is_known && (kind == Kind::local || process().rank() == 0))
    process().log().error("{}", line_of(error, kind, call));
  return static_cast<int>(error.code);
}

/// Runs a call; no exception of the standard library (out of memory, say) may leave it.
template <class Action>
int guarded(const char* call, Kind kind, Action action) noexcept {
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
int with_session(const char* call, Kind kind, Action action) noexcept {
  return guarded(call, kind, [&]() -> Status {
    CAIRN_ASSIGN(Session * session, kind == Kind::collective ? process().session_for_all(call)
                                                             : process().session(call));
    return action(*session);
  });
}

Status copy_out(const std::string& text, char* out, std::size_t size, const char* call) {
  if (out == nullptr) return {};
  if (text.size() >= size)
    return cairn::fail(Code::bad_argument,
                       "{}: the path or name {} needs {} bytes, but the buffer has {}", call, text,
                       text.size() + 1, size);
  std::memcpy(out, text.c_str(), text.size() + 1);
  return {};
}

Status fail_on_null(const char* call, const void* argument, const char* name) {
  if (argument != nullptr) return {};
  return cairn::fail(Code::bad_argument, "{}: {} is NULL", call, name);
}

/// A question to the session that every rank must ask; only then, when they are known to be in one
/// call, do they compare whether each has given a place for the answer.
template <class Question>
int ask(const char* call, int* flag, Question question) {
  if (flag != nullptr) *flag = 0;
  return with_session(call, Kind::collective, [&](Session& session) -> Status {
    CAIRN_ASSIGN(const bool answer, question(session));
    CAIRN_TRY(process().agree(fail_on_null(call, flag, "flag")));
    *flag = answer ? 1 : 0;
    return {};
  });
}

/// NULL is the empty name, which no dataset has, so all ranks see it alike.
int by_name(const char* call, const char* name, Status (Session::*action)(const std::string&)) {
  return with_session(call, Kind::collective, [&](Session& session) -> Status {
    const std::string text = name == nullptr ? "" : name;
    CAIRN_TRY((session.*action)(text));
    if (!text.empty()) return {};
    return cairn::fail(Code::bad_argument, "{}: the name is NULL or empty", call);
  });
}

/// The absolute path of `name`, which must fit where paths are kept.
Result<std::string> absolute(const char* name) {
  std::string path = process().absolute(name);
  if (path.size() < SCR_MAX_FILENAME) return path;
  return cairn::fail(Code::bad_argument, "the path {} has {} bytes; at most {} are allowed", path,
                     path.size(), SCR_MAX_FILENAME - 1);
}

/// Writes the path that `find` gives to `file`. A program that runs without checkpoints still opens
/// its files: it gets the name back.
template <class Find>
int route(const char* call, const char* name, char* file, int size, Find find) {
  const auto bytes = static_cast<std::size_t>(size > 0 ? size : 0);
  const int rc = with_session(call, Kind::local, [&](Session& session) -> Status {
    CAIRN_TRY(fail_on_null(call, name, "name"));
    CAIRN_TRY(fail_on_null(call, file, "file"));
    CAIRN_ASSIGN(const std::string path, find(session));
    return copy_out(path, file, bytes, call);
  });
  if (rc == CAIRN_E_DISABLED && name != nullptr)
    guarded(call, Kind::local, [&] { return copy_out(name, file, bytes, call); });
  return rc;
}

[[noreturn]] void end_program(Session& session) {
  session.log_exit();
  if (process().rank() == 0) process().log().info("the run ends here (SCR_HALT_EXIT=1)");
  SCR_Finalize();
  MPI_Finalize();
  std::exit(EXIT_SUCCESS);
}

/// SCR_HALT_EXIT=1: ends the run if it is to stop, where nothing is lost by that: it has just begun
/// or made a checkpoint. One that is to stop at once ends anyway.
void exit_if_halted() {
  if (!process().may_exit()) return;
  with_session("SCR_Should_exit", Kind::collective, [](Session& session) -> Status {
    CAIRN_ASSIGN(const bool ends, session.may_end_here());
    if (ends) end_program(session);
    return {};
  });
}

/// SCR_HALT_EXIT=1: ends a run that is to stop at once. No checkpoint is asked of it any more, so
/// it may never come to a Complete.
void exit_if_halted_at_once() {
  if (!process().may_exit()) return;
  const auto session = process().session("SCR_Need_checkpoint");
  if (session && (*session)->stops_at_once()) end_program(**session);
}

int complete(const char* call, int valid, Status (Session::*action)(bool)) {
  const int rc = with_session(call, Kind::collective,
                              [&](Session& session) { return (session.*action)(valid != 0); });
  if (rc == SCR_SUCCESS || rc == CAIRN_E_NOT_COPIED) exit_if_halted();
  return rc;
}

}  // namespace

int SCR_Init(void) {
  const int rc = guarded("SCR_Init", Kind::collective, [] { return process().init(); });
  if (rc == SCR_SUCCESS) exit_if_halted();
  return rc;
}

int SCR_Finalize(void) {
  return guarded("SCR_Finalize", Kind::collective, [] { return process().finalize(); });
}

int cairn::configure(const std::string& config, std::optional<std::string>& value) noexcept {
  return guarded("SCR_Config", ::Kind::collective, [&]() -> Status {
    CAIRN_ASSIGN(value, process().configure(config));
    return {};
  });
}

const char* SCR_Config(const char* config) {
  std::optional<std::string> value;
  if (config == nullptr || cairn::configure(config, value) != SCR_SUCCESS) return nullptr;
  return value ? ::strdup(value->c_str()) : nullptr;
}

const char* SCR_Configf(const char* format, ...) {
  if (format == nullptr) return nullptr;
  char text[4 * SCR_MAX_FILENAME];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length >= 0 && static_cast<std::size_t>(length) < sizeof text) return SCR_Config(text);
  guarded("SCR_Configf", Kind::collective, [&]() -> Status {
    return cairn::fail(Code::bad_argument,
                       "SCR_Configf: the text has {} bytes; at most {} are allowed", length,
                       sizeof text - 1);
  });
  return nullptr;
}

char* SCR_Get_version(void) {
  static char version[] = SCR_VERSION;
  return version;
}

int SCR_Should_exit(int* flag) {
  return ask("SCR_Should_exit", flag, [](Session& session) { return session.should_exit(); });
}

int SCR_Need_checkpoint(int* flag) {
  const int rc =
      ask("SCR_Need_checkpoint", flag, [](Session& session) { return session.need_checkpoint(); });
  if (rc == SCR_SUCCESS) exit_if_halted_at_once();
  return rc;
}

int SCR_Route_file(const char* name, char* file) {
  constexpr const char* call = "SCR_Route_file";
  return route(call, name, file, SCR_MAX_FILENAME, [&](Session& session) -> Result<std::string> {
    if (session.state_name() == "IDLE") return std::string(name);
    CAIRN_ASSIGN(const std::string path, absolute(name));
    return session.route_file(path);
  });
}

int SCR_Have_restart(int* flag, char* name) {
  constexpr const char* call = "SCR_Have_restart";
  return ask(call, flag, [&](Session& session) -> Result<bool> {
    CAIRN_ASSIGN(const auto found, session.have_restart());
    if (found && flag != nullptr) CAIRN_TRY(copy_out(*found, name, SCR_MAX_FILENAME, call));
    return found.has_value();
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
  return route(call, name, file, size, [&](Session& session) -> Result<std::string> {
    CAIRN_ASSIGN(const std::string path, absolute(name));
    if (session.state_name() != "IDLE") return session.route_file(path);
    std::string loaded = session.route_loaded(path);
    return loaded == path ? std::string(name) : loaded;
  });
}

int SCR_Start(const char*) { return SCR_Start_checkpoint(); }

int SCR_Complete(const char*, int valid) { return SCR_Complete_checkpoint(valid); }
