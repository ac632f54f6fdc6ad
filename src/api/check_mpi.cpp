// SCR_Init refuses to work where the ranks cannot be what they seem: with the library of another
// MPI, or under another MPI's launcher.
#include <unistd.h>

#include "api/process.hpp"
#include "comm/ancestors.hpp"
#include "config/gather.hpp"
#include "prefix/event_log.hpp"

namespace cairn {

/// No rank can reach another one, so each finds by itself what they all find.
Status Process::check_library() {
  if (library_) return {};
  state_ = State::failed;
  const auto sources =
      gather_sources(*files_, current_process(), app_.entries(), system_settings_path());
  const auto resolved = sources ? resolve(*sources) : tl::unexpected(sources.error());
  if (resolved) log_failed_init(resolved->settings, library_.error());
  return library_;
}

/// Of the ranks of one world only rank 0 reports.
Status Process::check_launch() {
  const MpiFamily family = family_of_library(mpi_library_version());
  const bool is_alone = comm_->size() == 1;
  const Launch launch = {family, comm_->size(), ::getpid(), current_process().environment,
                         is_alone && has_rank_below_launcher(ancestors_of(::getpid()))};
  const LaunchJudgement found = judge_launch(launch);
  if (found.verdict == LaunchJudgement::Verdict::odd) log_.warning("SCR_Init: {}", found.text);
  if (found.verdict != LaunchJudgement::Verdict::wrong) return {};
  launched_rank_ = found.rank;
  return fail(Code::bad_setting, "{}", found.text);
}

/// For `cairn run`: otherwise the job seems to have ended well without any use of Cairn.
void Process::log_failed_init(const Settings& settings, const Error& why) {
  const auto part = rank() == 0 ? EventLog::Part::writer : EventLog::Part::silent;
  EventLog(*files_, *clock_, settings, log_, part).init_failed(why);
}

}  // namespace cairn
