// The job of a wrapped program, in a library of its own for each MPI: the preloaded library loads
// it once the program has called MPI_Init.
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include "base/blocked_signals.hpp"
#include "base/log.hpp"
#include "comm/mpi.hpp"
#include "files/posix_files.hpp"
#include "session/job_settings.hpp"
#include "wrapped/wrapped_calls.h"
#include "wrapped/wrapped_process.hpp"

namespace cairn {
namespace {

/// The calls are plain functions, so what they work on cannot be passed to them.
std::unique_ptr<WrappedProcess>& the_process() {
  static auto* const process = new std::unique_ptr<WrappedProcess>;  // outlives all threads
  return *process;
}

std::string_view step_of(std::string_view name, std::size_t begin, std::size_t length) {
  return name.substr(begin, length);
}

/// A signal handler may open files, and must not meet the lock that its own thread holds. No
/// exception reaches the preloaded library, which has a C++ library of its own.
template <class Call>
void let_hear(const Call& call) {
  const BlockedSignals blocked;
  WrappedJob& job = the_process()->job();
  try {
    call(job);
  } catch (const std::bad_alloc&) {
    job.missed();
  }
}

void opened(const char* name, std::size_t begin, std::size_t length, int empties) {
  let_hear([&](WrappedJob& job) { job.opened(name, step_of(name, begin, length), empties != 0); });
}

void changes(const char* name, std::size_t begin, std::size_t length, int empties) {
  let_hear([&](WrappedJob& job) { job.changes(name, step_of(name, begin, length), empties != 0); });
}

void changed(const char* name) {
  let_hear([&](WrappedJob& job) { job.changed(name); });
}

void not_redirected(const char* name, std::size_t begin, std::size_t length, int empties) {
  let_hear([&](WrappedJob& job) {
    job.not_redirected(name, step_of(name, begin, length), empties != 0);
  });
}

void removed(const char* name) {
  let_hear([&](WrappedJob& job) { job.removed(name); });
}

void moved_out(const char* name) {
  let_hear([&](WrappedJob& job) { job.moved_out(name); });
}

// Neither destroys it: another thread may be in one of the calls above.

/// Other ranks may still wait for messages of this one, which MPI sends in a call of it only. For a
/// dead rank the barrier would wait for ever, or it fails; after it, all files are written.
int finish() {
  WrappedProcess& process = *the_process();
  const bool all_came = !process.has_lost_rank() && PMPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS;
  return process.finish() && all_came ? 1 : 0;
}

void leave() { the_process()->leave(); }
void aborts() { the_process()->stop(); }

constexpr cairn_wrapped_calls calls = {opened,    changes, changed, not_redirected, removed,
                                       moved_out, finish,  leave,   aborts};

Result<ResolvedSettings> settings_of_job(Communicator& world) {
  const auto files = make_posix_files();
  CAIRN_ASSIGN(ResolvedSettings resolved, resolve_job_settings(world, *files, {}));
  keep_two_checkpoints(resolved.settings);
  if (!resolved.settings.enable) return fail(Code::disabled, "SCR_ENABLE=0");
  return resolved;
}

bool start(const cairn_wrapped_options& options) {
  MpiCommunicator world(MPI_COMM_WORLD);
  const Log log(log_to_stderr);
  const auto settings = settings_of_job(world);
  if (!settings) {
    if (world.rank() == 0)
      log.warning("the program runs without checkpoints of Cairn: {}", settings.error().text);
    return false;
  }
  WrappedProcess::Options its_options;
  its_options.redirected = options.redirected;
  its_options.move_to_plain_place = [move = options.move_to_plain_place](const std::string& name) {
    const int error = move(name.c_str());
    if (error == 0 || error == ENOENT) return Status{};  // the program may have removed it
    return Status(fail(error == EBUSY ? Code::busy : Code::io,
                       "cannot move {} to its plain place: {}", name, std::strerror(error)));
  };
  its_options.find_step = [find = options.find_step](std::string_view name) {
    std::size_t begin = 0;
    std::size_t length = 0;
    find(std::string(name).c_str(), &begin, &length);
    return step_of(name, begin, length);
  };
  its_options.job_lost = options.job_lost;
  the_process() = WrappedProcess::start(world, log, *settings, std::move(its_options));
  return the_process() != nullptr;
}

}  // namespace
}  // namespace cairn

extern "C" __attribute__((visibility("default"))) const cairn_wrapped_calls* cairn_wrapped_start(
    const cairn_wrapped_options* options) {
  try {
    return cairn::start(*options) ? &cairn::calls : nullptr;
  } catch (const std::exception& error) {
    cairn::Log(cairn::log_to_stderr)
        .warning("the program runs without checkpoints of Cairn: {}", error.what());
    return nullptr;
  }
}
