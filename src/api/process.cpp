#include "api/process.hpp"

#include <array>
#include <filesystem>

#include "config/gather.hpp"
#include "config/remedy.hpp"
#include "files/posix_files.hpp"
#include "prefix/app_settings_file.hpp"
#include "session/same_call.hpp"
#include "topology/placement.hpp"

namespace cairn {

Process::Process() : log_(log_to_stderr), files_(make_posix_files()), clock_(make_system_clock()) {}

Process& process() {
  static Process instance;
  return instance;
}

int Process::rank() const {
  if (comm_) return comm_->rank();
  int ready = 0;
  int over = 0;
  int rank = 0;
  MPI_Initialized(&ready);
  MPI_Finalized(&over);
  if (ready != 0 && over == 0) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

std::string Process::text_of(const Error& error) const {
  return with_remedy(error, resolved_ ? resolved_->settings : Settings());
}

Status Process::agree(Status mine) { return cairn::agree(*comm_, std::move(mine)); }

/// All ranks are in this call, before SCR_Init or after SCR_Finalize; else all say so.
Status Process::enter_outside(std::string_view call) {
  int ready = 0;
  int over = 0;
  MPI_Initialized(&ready);
  MPI_Finalized(&over);
  if (ready == 0 || over != 0)
    return fail(
        Code::wrong_state,
        "{} in state UNINIT: the calls of scr.h come after MPI_Init and before MPI_Finalize", call);
  if (!comm_) comm_ = std::make_unique<MpiCommunicator>(MPI_COMM_WORLD);
  return check_same_call(*comm_, call, "UNINIT");
}

/// Only what rank 0 was told counts; a rank that was told otherwise must hear of it.
Status Process::compare_app_settings() {
  SettingSources told;
  told.app_entries = app_.entries();
  const Blob blob = to_blob(told);
  const std::string_view bytes(reinterpret_cast<const char*>(blob.data()), blob.size());
  const auto hash = static_cast<std::int64_t>(hash_of_name(bytes) >> 1);
  std::array<std::int64_t, 2> extremes = {hash, -hash};
  comm_->allreduce(extremes, Reduce::min);
  if (extremes[0] == -extremes[1]) return {};
  return fail(
      Code::differs,
      "SCR_Init in state UNINIT: ranks have made different SCR_Config calls; all ranks must make "
      "the same ones in the same order");
}

Lookup Process::lookup() const {
  return [this](const std::string& key) {
    return resolved_ ? resolved_->value_of(key) : std::optional<std::string>{};
  };
}

/// Rank 0 reads, all work out the same; only the node's name is each rank's own.
Status Process::resolve_settings() {
  CAIRN_TRY(compare_app_settings());
  Blob blob;
  Status gathered;
  if (comm_->rank() == 0) {
    auto sources =
        gather_sources(*files_, current_process(), app_.entries(), system_settings_path());
    if (sources)
      blob = to_blob(*sources);
    else
      gathered = tl::unexpected(std::move(sources).error());
  }
  CAIRN_TRY(agree(std::move(gathered)));
  bcast_blob(*comm_, blob, 0);
  CAIRN_ASSIGN(SettingSources sources, sources_from_blob(blob));
  take_own_facts(sources, current_process());
  auto resolved = resolve(sources);
  CAIRN_TRY(agree(resolved ? Status{} : Status(tl::unexpected(resolved.error()))));
  resolved_ = *std::move(resolved);
  if (comm_->rank() == 0) {
    for (const std::string& warning : resolved_->warnings) log_.warning("{}", warning);
    for (const std::string& note : resolved_->notes) log_.info("{}", note);
    warn_of_shared_job();
  }
  return {};
}

void Process::warn_of_shared_job() const {
  const ResolvedOption* job = resolved_->find("SCR_JOB_ID");
  if (!resolved_->settings.enable || job->source != "default") return;
  log_.warning(
      "no resource manager tells a job id: all your programs on these nodes take each other's "
      "checkpoints for theirs, in job {}; set SCR_JOB_ID to a name of this job's own, the same "
      "whenever it is started again",
      job->value);
}

Status Process::init() {
  if (state_ == State::running) return session_->refuse("SCR_Init", "UNINIT");
  CAIRN_TRY(enter_outside("SCR_Init"));
  state_ = State::failed;
  CAIRN_TRY(resolve_settings());
  if (!resolved_->settings.enable) {
    state_ = State::disabled;
    if (rank() == 0) log_.info("SCR_ENABLE=0: the run goes on without checkpoints");
    return fail(Code::disabled, "SCR_ENABLE=0");
  }
  CAIRN_ASSIGN(session_,
               Session::init({*comm_, *files_, *clock_, *background_, log_}, resolved_->settings));
  state_ = State::running;
  if (rank() == 0) keep_app_settings_for_commands();
  return {};
}

/// Not what the environment or the user's file overrides: where the commands do not see these, as
/// in the job that cairn run has given another id, they would take it for what holds.
void Process::keep_app_settings_for_commands() {
  std::vector<Entry> in_force = app_.entries();
  std::erase_if(in_force, [&](const Entry& entry) {
    const ResolvedOption* option = resolved_->find(entry.key);
    return option != nullptr && option->source != "SCR_Config";
  });
  const Status kept =
      keep_app_settings(*files_, PrefixFolder{resolved_->settings.prefix}, std::move(in_force));
  if (!kept)
    log_.warning("cairn's commands will not know what SCR_Config has set: {}", kept.error().text);
}

Status Process::finalize() {
  CAIRN_ASSIGN(Session * running, session_for_all("SCR_Finalize"));
  Status done = running->finalize();
  if (!done && !running->is_ended()) return done;
  session_.reset();
  comm_.reset();
  resolved_.reset();
  state_ = State::finalized;
  return done;
}

Result<Session*> Process::session_for_all(std::string_view call) {
  if (outside()) CAIRN_TRY(enter_outside(call));
  return session(call);
}

Result<Session*> Process::session(std::string_view call) {
  switch (state_) {
    case State::running:
      return session_.get();
    case State::disabled:
      return fail(Code::disabled, "{}: SCR_ENABLE=0", call);
    case State::failed:
      return fail(Code::disabled, "{}: SCR_Init has failed", call);
    case State::before_init:
      return fail(Code::wrong_state, "{} in state UNINIT: call SCR_Init first", call);
    case State::finalized:
      break;
  }
  return fail(Code::wrong_state, "{} in state UNINIT: SCR_Finalize has been called", call);
}

Result<std::optional<std::string>> Process::configure(const std::string& text) {
  const Lookup environment =
      [facts = current_process()](const std::string& name) -> std::optional<std::string> {
    const auto found = facts.environment.find(name);
    if (found == facts.environment.end()) return std::nullopt;
    return found->second;
  };
  CAIRN_ASSIGN(const ConfigRequest request, parse_request(text, environment));
  const bool change = request.kind == ConfigRequest::Kind::change;
  if (change && state_ == State::running)
    return fail(
        Code::wrong_state,
        "SCR_Config(\"{}\") in state {}: settings can be changed before SCR_Init only; this one "
        "is unchanged",
        text, session_->state_name());
  ConfigAnswer answer = change ? app_.change(request.entry) : app_.query(request, lookup());
  if (rank() == 0)
    for (const std::string& warning : answer.warnings)
      log_.warning("SCR_Config(\"{}\"): {}", text, warning);
  return std::move(answer.value);
}

std::string Process::absolute(const std::string& name) const {
  namespace fs = std::filesystem;
  std::error_code error;
  std::string path = normalise(name, fs::current_path(error).string());
  if (!resolved_) return path;
  const std::string& prefix = resolved_->settings.prefix;
  if (lies_below(path, prefix, nullptr)) return path;
  // The application may name the prefix directory by another way that leads there.
  const std::string real_path = fs::weakly_canonical(path, error).string();
  const std::string real_prefix = fs::weakly_canonical(prefix, error).string();
  std::string relative;
  return !error && lies_below(real_path, real_prefix, &relative) ? prefix + "/" + relative : path;
}

}  // namespace cairn
