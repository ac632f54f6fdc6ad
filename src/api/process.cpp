#include "api/process.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "api/check_mpi.hpp"
#include "api/work_of_tasks.hpp"
#include "config/gather.hpp"
#include "config/remedy.hpp"
#include "files/posix_files.hpp"
#include "prefix/app_settings_file.hpp"
#include "prefix/event_log.hpp"
#include "scr.h"
#include "session/job_settings.hpp"
#include "session/same_call.hpp"
#include "topology/placement.hpp"

namespace cairn {

Process::Process()
    : process_(::getpid()),
      log_(log_to_stderr),
      files_(make_posix_files()),
      clock_(make_system_clock()),
      library_(check_library_of_process()) {
  if (!library_) launched_rank_ = launched_rank_of_process();
}

/// At exit() a thread may hang in a call of the system. It is left then, with what it uses.
Process::~Process() {
  const bool is_child = process_ != ::getpid();  // made by fork: no thread is there
  if (session_ && (is_child || !session_->leave())) leave_session();
  if (!tasks_ || tasks_->queue().leave()) return;
  (void)files_.release();
  (void)clock_.release();
}

void Process::leave_session() {
  (void)session_.release();
  (void)files_.release();
  (void)clock_.release();
  (void)background_.release();
  files_ = make_posix_files();
  clock_ = make_system_clock();
  background_ = make_background_thread();
}

Process& process() {
  static Process instance;
  return instance;
}

int Process::rank() const {
  if (launched_rank_) return *launched_rank_;
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
  CAIRN_TRY(library_);
  int ready = 0;
  int over = 0;
  MPI_Initialized(&ready);
  MPI_Finalized(&over);
  if (ready == 0 || over != 0)
    return fail(
        Code::wrong_state,
        "{} in state UNINIT: make the calls of scr.h after MPI_Init and before MPI_Finalize", call);
  if (!comm_) comm_ = std::make_unique<MpiCommunicator>(MPI_COMM_WORLD);
  return check_same_call(*comm_, call, "UNINIT");
}

namespace {

/// As SCR_Config takes them. None of them is secret: such options cannot be set by it.
std::string text_of_entries(const std::vector<Entry>& entries) {
  std::string text;
  for (const Entry& entry : entries) {
    text += fmt::format("{}\"{}={}", text.empty() ? "" : ", ", entry.key, entry.value);
    for (const Pair& child : entry.children) text += fmt::format(" {}={}", child.key, child.value);
    text += '"';
  }
  return text.empty() ? "none" : text;
}

}  // namespace

/// Rank 0's SCR_Config calls count; where another rank made others, all ranks fail.
Status Process::compare_app_settings() {
  SettingSources set;
  set.app_entries = app_.entries();
  const Blob blob = to_blob(set);
  const std::string_view bytes(reinterpret_cast<const char*>(blob.data()), blob.size());
  const auto hash = static_cast<std::int64_t>(hash_of_name(bytes) >> 1);
  std::array<std::int64_t, 2> extremes = {hash, -hash};
  comm_->allreduce(extremes, Reduce::min);
  if (extremes[0] == -extremes[1]) return {};
  return fail(Code::differs,
              "SCR_Init in state UNINIT: the ranks made different SCR_Config calls. {}. All ranks "
              "must make the same ones in the same order",
              who_has_which(*comm_, text_of_entries(app_.entries())));
}

/// Before SCR_Init: what environment and files say now, so far as it can be read. SCR_Init reports
/// what is wrong with them.
Lookup Process::lookup() const {
  if (resolved_) return [this](const std::string& key) { return resolved_->value_of(key); };
  auto now = gather_sources(*files_, current_process(), app_.entries(), system_settings_path())
                 .and_then(resolve);
  if (!now) return [](const std::string&) { return std::optional<std::string>{}; };
  return [settings = *std::move(now)](const std::string& key) {
    const ResolvedOption* option = settings.find(key);
    const bool is_said = option != nullptr && option->source != "default";
    return is_said ? settings.value_of(key) : std::nullopt;
  };
}

Status Process::resolve_settings() {
  CAIRN_TRY(compare_app_settings());
  CAIRN_ASSIGN(resolved_, resolve_job_settings(*comm_, *files_, app_.entries()));
  const std::string& prefix = resolved_->settings.prefix;
  std::error_code error;
  real_prefix_ = std::filesystem::weakly_canonical(prefix, error).string();
  if (error) real_prefix_ = prefix;
  return {};
}

void Process::report_settings() const {
  if (comm_->rank() != 0) return;
  for (const std::string& warning : resolved_->warnings) log_.warning("{}", warning);
  for (const std::string& note : resolved_->notes) log_.info("{}", note);
}

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
  const LaunchJudgement found = judge_launch_of_process(comm_->size());
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

Status Process::refuse_init() {
  const std::string_view state = name_of(session_->phase());
  CAIRN_TRY(check_same_call(*comm_, "SCR_Init", state));
  return fail(Code::wrong_state, "SCR_Init is not allowed in state {}, only in state UNINIT",
              state);
}

Status Process::init() {
  if (state_ == State::running) return refuse_init();
  CAIRN_TRY(check_library());
  CAIRN_TRY(enter_outside("SCR_Init"));
  state_ = State::failed;
  CAIRN_TRY(resolve_settings());
  if (!resolved_->settings.enable) {
    report_settings();
    state_ = State::disabled;
    if (rank() == 0) log_.info("SCR_ENABLE=0: the run continues without checkpoints");
    return fail(Code::disabled, "SCR_ENABLE=0");
  }
  if (const Status started = start_session(); !started) {
    log_failed_init(resolved_->settings, started.error());
    return started;
  }
  state_ = State::running;
  run_.begin(*comm_, *files_, *clock_, log_, session_->placement(), *resolved_);
  if (rank() == 0) keep_app_settings_for_commands();
  return {};
}

/// Without them, the session protects each checkpoint at once, and says why.
void Process::open_tasks() {
  work_behind_.reset();
  tasks_.reset();  // of an SCR_Init that failed
  const auto& checkpoints = resolved_->settings.checkpoints;
  const bool is_wanted =
      resolved_->settings.keep_old &&
      std::any_of(checkpoints.begin(), checkpoints.end(),
                  [](const auto& checkpoint) { return checkpoint.behind && !checkpoint.bypass; });
  if (!is_wanted || comm_->size() == 1) return;
  auto opened = BackgroundTasks::open(*comm_, resolved_->settings.node_name, log_);
  if (!opened) {
    Error why = std::move(opened).error();
    why.code = Code::disabled;  // no file is to blame
    why.text +=
        ". Allow TCP connections on all ports between the nodes of the job, or set "
        "CAIRN_PROTECT=now";
    work_behind_ = std::make_unique<NoWorkBehind>(std::move(why));
    return;
  }
  tasks_ = *std::move(opened);
  work_behind_ = std::make_unique<WorkOfTasks>(*comm_, tasks_->queue());
}

Status Process::start_session() {
  CAIRN_TRY(check_launch());
  report_settings();
  comm_->end_job_on_neighbour(resolved_->settings.node_name);
  open_tasks();
  const Session::Environment environment = {*comm_,       *files_, *clock_,
                                            *background_, log_,    work_behind_.get()};
  CAIRN_ASSIGN(session_, Session::init(environment, resolved_->settings));
  if (tasks_) tasks_->call_at_finalize([this] { session_->safety().protect_at_end(); });
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
  std::function<void()> last;
  if (rank() == 0)
    last = [run = run_, &files = *files_, &clock = *clock_, log = log_] {
      run.end(files, clock, log);
    };
  Status done = running->finalize(std::move(last));
  if (!done && running->phase() != Phase::ended) return done;
  // All tasks are done, and if one of them has failed, that was reported.
  if (tasks_) (void)tasks_->close(*comm_);
  tasks_.reset();
  if (session_->is_held()) leave_session();
  session_.reset();
  work_behind_.reset();
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
      return fail(Code::disabled, "{}: no effect, because SCR_Init failed", call);
    case State::before_init:
      return fail(Code::wrong_state, "{} in state UNINIT: call SCR_Init first", call);
    case State::finalized:
      break;
  }
  return fail(Code::wrong_state, "{} in state UNINIT: SCR_Finalize was called before", call);
}

Result<std::optional<std::string>> Process::configure(const std::string& text) {
  const ProcessFacts facts = current_process();
  CAIRN_ASSIGN(const ConfigRequest request, parse_request(text, environment_of(facts)));
  const bool change = request.kind == ConfigRequest::Kind::change;
  if (change && state_ == State::running)
    return fail(Code::wrong_state,
                "SCR_Config(\"{}\") in state {}: settings can be changed only before SCR_Init; "
                "this one is unchanged",
                text, name_of(session_->phase()));
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
  // The application may name the prefix directory by another way that leads there. Only a path that
  // does not say so by itself is looked at, as that directory may hang.
  std::string relative;
  if (lies_below(path, real_prefix_, &relative)) return prefix + "/" + relative;
  const std::string real_path = fs::weakly_canonical(path, error).string();
  return !error && lies_below(real_path, real_prefix_, &relative) ? prefix + "/" + relative : path;
}

}  // namespace cairn
