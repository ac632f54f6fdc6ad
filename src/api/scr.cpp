// scr.h: each call translates its arguments, calls the Session, and translates the result.

#include "scr.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "api/calls.hpp"
#include "api/configure.hpp"

namespace {

using cairn::CallKind;
using cairn::Code;
using cairn::fail_on_null;
using cairn::guarded;
using cairn::NamedDatasets;
using cairn::Phase;
using cairn::process;
using cairn::Result;
using cairn::Session;
using cairn::Status;
using cairn::with_session;

static_assert(CAIRN_E_DISABLED == static_cast<int>(Code::disabled));
static_assert(CAIRN_E_NOT_COPIED == static_cast<int>(Code::not_copied));
static_assert(SCR_FLAG_OUTPUT == cairn::flag_output &&
              SCR_FLAG_CHECKPOINT == cairn::flag_checkpoint);

Status copy_out(const std::string& text, char* out, std::size_t size, const char* call) {
  if (out == nullptr) return {};
  if (text.size() >= size)
    return cairn::fail(Code::bad_argument,
                       "{}: the path or name {} needs {} bytes, but the buffer has {}", call, text,
                       text.size() + 1, size);
  std::memcpy(out, text.c_str(), text.size() + 1);
  return {};
}

/// A collective query of the session. When the session has checked that all ranks make the same
/// call, the ranks check that each has passed a place for the answer.
template <class Question>
int ask(const char* call, int* flag, Question question) {
  if (flag != nullptr) *flag = 0;
  return with_session(call, CallKind::collective, [&](Session& session) -> Status {
    CAIRN_ASSIGN(const bool answer, question(session));
    CAIRN_TRY(process().agree(fail_on_null(call, flag, "flag")));
    *flag = answer ? 1 : 0;
    return {};
  });
}

/// NULL counts as the empty name, which no dataset has, so all ranks treat it in the same way.
int by_name(const char* call, const char* name,
            Status (NamedDatasets::*action)(const std::string&)) {
  return with_session(call, CallKind::collective, [&](Session& session) -> Status {
    const std::string text = name == nullptr ? "" : name;
    CAIRN_TRY((session.datasets().*action)(text));
    if (!text.empty()) return {};
    return cairn::fail(Code::bad_argument, "{}: the name is NULL or empty", call);
  });
}

/// The absolute path of `name`, which must fit in SCR_MAX_FILENAME bytes.
Result<std::string> absolute(const char* name) {
  std::string path = process().absolute(name);
  if (path.size() < SCR_MAX_FILENAME) return path;
  return cairn::fail(Code::bad_argument, "the path {} has {} bytes; at most {} are allowed", path,
                     path.size(), SCR_MAX_FILENAME - 1);
}

/// Copies the path that `find` returns to `file`. A program without checkpoints still opens its
/// files, so it gets the name back.
template <class Find>
int route(const char* call, const char* name, char* file, int size, Find find) {
  const auto bytes = static_cast<std::size_t>(size > 0 ? size : 0);
  const int rc = with_session(call, CallKind::local, [&](Session& session) -> Status {
    CAIRN_TRY(fail_on_null(call, name, "name"));
    CAIRN_TRY(fail_on_null(call, file, "file"));
    CAIRN_ASSIGN(const std::string path, find(session));
    return copy_out(path, file, bytes, call);
  });
  if (rc == CAIRN_E_DISABLED && name != nullptr)
    guarded(call, CallKind::local, [&] { return copy_out(name, file, bytes, call); });
  return rc;
}

[[noreturn]] void end_program(Session& session) {
  session.schedule().log_exit();
  if (process().rank() == 0) process().log().info("the run ends here (SCR_HALT_EXIT=1)");
  SCR_Finalize();
  MPI_Finalize();
  std::exit(EXIT_SUCCESS);
}

/// SCR_HALT_EXIT=1: ends the run on a halt request, if that loses nothing because the run has just
/// begun or made a checkpoint. With an immediate halt it ends in any case.
void exit_if_halted() {
  if (!process().may_exit()) return;
  with_session("SCR_Should_exit", CallKind::collective, [](Session& session) -> Status {
    CAIRN_ASSIGN(const bool ends, session.schedule().may_end_here());
    if (ends) end_program(session);
    return {};
  });
}

/// SCR_HALT_EXIT=1: ends the run on an immediate halt. SCR_Need_checkpoint requests no further
/// checkpoint then, so the run might never call a Complete function.
void exit_if_halted_at_once() {
  if (!process().may_exit()) return;
  const auto session = process().session("SCR_Need_checkpoint");
  if (session && (*session)->schedule().stops_at_once()) end_program(**session);
}

/// A Complete in its place has ended the phase. An error may be that of an earlier dataset, which
/// could not be protected behind the program: that keeps no program from halting.
bool has_ended_phase(int rc) {
  return rc != CAIRN_E_DISABLED && rc != CAIRN_E_WRONG_STATE && rc != CAIRN_E_DIFFERS;
}

int complete(const char* call, int valid, Status (Session::*action)(bool)) {
  const int rc = with_session(call, CallKind::collective,
                              [&](Session& session) { return (session.*action)(valid != 0); });
  if (has_ended_phase(rc)) exit_if_halted();
  return rc;
}

}  // namespace

int SCR_Init(void) {
  const int rc = guarded("SCR_Init", CallKind::collective, [] { return process().init(); });
  if (rc == SCR_SUCCESS) exit_if_halted();
  return rc;
}

int SCR_Finalize(void) {
  return guarded("SCR_Finalize", CallKind::collective, [] { return process().finalize(); });
}

int cairn::configure(const std::string& config, std::optional<std::string>& value) noexcept {
  return guarded("SCR_Config", CallKind::collective, [&]() -> Status {
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
  guarded("SCR_Configf", CallKind::collective, [&]() -> Status {
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
  return ask("SCR_Should_exit", flag,
             [](Session& session) { return session.schedule().should_exit(); });
}

int SCR_Need_checkpoint(int* flag) {
  const int rc = ask("SCR_Need_checkpoint", flag,
                     [](Session& session) { return session.schedule().need_checkpoint(); });
  if (rc == SCR_SUCCESS) exit_if_halted_at_once();
  return rc;
}

int SCR_Route_file(const char* name, char* file) {
  constexpr const char* call = "SCR_Route_file";
  return route(call, name, file, SCR_MAX_FILENAME, [&](Session& session) -> Result<std::string> {
    if (session.phase() == Phase::idle) return std::string(name);
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
  return with_session(call, CallKind::collective, [&](Session& session) -> Status {
    CAIRN_ASSIGN(const std::string found, session.start_restart());
    return copy_out(found, name, SCR_MAX_FILENAME, call);
  });
}

int SCR_Complete_restart(int valid) {
  return with_session("SCR_Complete_restart", CallKind::collective,
                      [&](Session& session) { return session.complete_restart(valid != 0); });
}

int SCR_Start_checkpoint(void) {
  return with_session("SCR_Start_checkpoint", CallKind::collective,
                      [](Session& session) { return session.start_checkpoint(); });
}

int SCR_Complete_checkpoint(int valid) {
  return complete("SCR_Complete_checkpoint", valid, &Session::complete_checkpoint);
}

int SCR_Start_output(const char* name, int flags) {
  return with_session("SCR_Start_output", CallKind::collective, [&](Session& session) {
    return session.start_output(name == nullptr ? "" : name, static_cast<std::uint32_t>(flags));
  });
}

int SCR_Complete_output(int valid) {
  return complete("SCR_Complete_output", valid, &Session::complete_output);
}

int SCR_Current(const char* name) { return by_name("SCR_Current", name, &NamedDatasets::current); }
int SCR_Drop(const char* name) { return by_name("SCR_Drop", name, &NamedDatasets::drop); }
int SCR_Delete(const char* name) { return by_name("SCR_Delete", name, &NamedDatasets::remove); }

// --- the calls of 2009: one file at a time, no brackets ---

int SCR_Route(const char* name, char* file, int size) {
  constexpr const char* call = "SCR_Route";
  return route(call, name, file, size, [&](Session& session) -> Result<std::string> {
    CAIRN_ASSIGN(const std::string path, absolute(name));
    if (session.phase() != Phase::idle) return session.route_file(path);
    std::string loaded = session.route_loaded(path);
    return loaded == path ? std::string(name) : loaded;
  });
}

int SCR_Start(const char*) { return SCR_Start_checkpoint(); }

int SCR_Complete(const char*, int valid) { return SCR_Complete_checkpoint(valid); }
