#include "session/session.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "session/recover_cache.hpp"
#include "session/same_call.hpp"

namespace cairn {

// --- init and finalize ---

Session::Session(const Environment& environment, const Settings& settings)
    : comm_(environment.comm),
      run_(environment.comm, environment.files, environment.clock, environment.background,
           environment.log, settings),
      cached_(run_),
      prefix_(run_.files, run_.clock, run_.background, run_.settings, run_.shared_log, run_.events,
              [this] { return cached_.parts(); }),
      flushing_(run_, cached_, prefix_),
      late_(run_, cached_, environment.behind),
      routing_(run_.files, run_.settings.prefix),
      writer_(run_, cached_, prefix_, flushing_, late_, routing_),
      restart_files_(run_, cached_, routing_),
      restarting_(run_, cached_, prefix_, flushing_, restart_files_),
      safety_(run_, cached_, flushing_, late_),
      cadence_(run_.settings, run_.clock.steady_us()),
      halting_(run_.files, run_.clock, run_.settings, run_.own_log, run_.events) {
  comm_.set_place(fmt::format("rank {} on {}", run_.rank, run_.settings.node_name));
}

Result<std::unique_ptr<Session>> Session::init(const Environment& environment,
                                               const Settings& settings) {
  std::unique_ptr<Session> session(new Session(environment, settings));
  CAIRN_TRY(session->prepare());
  return session;
}

Status Session::prepare() {
  run_.placement = gather_placement(comm_, run_.settings.node_name);
  PrefixOwner& owner = prefix_.owner();
  owner.look_for_directory(comm_);
  if (owner.is_missing()) run_.events.keep_quiet_about_trouble();
  run_.events.started(run_.ranks, run_.placement.nodes());
  CAIRN_TRY(open_stores_and_recover());
  CAIRN_TRY(open_prefix());
  late_.prepare(comm_);
  for (const std::string& weakness : weaknesses_of(run_.levels, run_.ranks))
    run_.shared_log.warning("{}", weakness);
  if (!run_.settings.keep_old)
    run_.shared_log.warning(
        "CAIRN_KEEP_OLD=0: the old checkpoint is deleted before the new one is written, so a "
        "failure in between loses both");
  const CachedDataset* loaded = restarting_.candidate();
  writer_.warn_if_too_small(comm_, std::max(loaded != nullptr ? loaded->record.data_bytes() : 0,
                                            run_.settings.checkpoint_bytes));
  if (run_.rank == 0) halting_.begin();
  if (flushes_any_async(run_.settings)) wait_for_no_file();
  cadence_ = Cadence(run_.settings, run_.clock.steady_us());
  log_computing();
  return {};
}

/// From here on no call waits for a file of the prefix directory that only describes the run.
void Session::wait_for_no_file() {
  run_.events.write_behind(run_.background);
  if (run_.rank == 0) halting_.watch(run_.background);
}

Status Session::open_stores_and_recover() {
  CAIRN_ASSIGN(run_.identity, find_prefix_identity(comm_, run_.files, run_.clock, run_.placement,
                                                   run_.settings, run_.own_log));
  CAIRN_TRY(open_stores(comm_, run_.files, run_.clock, run_.placement, run_.settings, run_.identity,
                        run_.own_log, run_.stores, run_.locks));
  CAIRN_ASSIGN(run_.levels, resolve_levels(comm_, run_.settings, run_.stores, run_.placement));
  CAIRN_TRY(purge_if_asked());
  CAIRN_ASSIGN(cached_.all(),
               recover_cache(comm_, run_.files, run_.clock, run_.stores, run_.levels,
                             run_.placement, run_.settings, run_.own_log, run_.events));
  restart_files_.drop_old_broadcasts();
  return {};
}

Status Session::purge_if_asked() {
  if (!run_.settings.cache_purge) return {};
  CAIRN_TRY(purge_cache(comm_, run_.files, run_.stores, run_.placement));
  run_.shared_log.info("SCR_CACHE_PURGE=1: the caches of job {} are empty now",
                       run_.settings.job_id);
  return {};
}

Status Session::open_prefix() {
  CAIRN_TRY(prefix_.open(comm_, static_cast<int>(run_.placement.beside(run_.rank).size())));
  restarting_.import_what_comes_next(comm_);
  flushing_.settle_identity(comm_);
  for (const CachedDataset& dataset : cached_.all())
    run_.last.come_after(dataset.info.number, dataset.info.checkpoint);
  flushing_.learn_from_prefix(comm_);
  flushing_.flush_at_init(comm_);
  return {};
}

void Session::log_computing() {
  computes_since_us_ = run_.clock.steady_us();
  run_.events.happened("COMPUTE_START");
}

Status Session::finalize(std::function<void()> last) {
  CAIRN_TRY(enter("SCR_Finalize", Phase::idle));
  phase_ = Phase::ended;
  finish_protection();
  const std::int64_t longest_us = run_.rank == 0 ? halting_.time_for_copies_us() : 0;
  const Status all_copied = with_late_failure(flushing_.flush_at_end(comm_, longest_us));
  close_books(longest_us >= 0, std::move(last));
  run_.background.wait();  // the next holder of the lock finds nothing on its way
  cached_.drop_spares();
  comm_.barrier();  // the lock is one rank's, the work that of all on its node
  run_.locks.clear();
  return all_copied;
}

/// Local. What the run changes last in the prefix directory. Where copies go on without the
/// program, no wait for that directory is without an end, as it may hang.
void Session::close_books(bool is_in_hurry, std::function<void()> last) {
  const bool hangs = flushing_.hangs();
  const auto close = [this, is_copying = !flushing_.async().is_idle(), last = std::move(last)] {
    if (!is_copying) prefix_.owner().close();  // else the thread that copies has its keeper
    run_.events.happened("FINALIZE");
    if (run_.rank == 0) halting_.end();
    if (last) last();
  };
  if (!flushes_any_async(run_.settings)) return close();
  const std::int64_t waits_us = is_in_hurry ? longest_closing_in_hurry_us : longest_closing_us;
  const bool is_closed =
      closing_.carry_out(run_.background, run_.clock, hangs ? 0 : waits_us, close);
  is_held_ = hangs || !is_closed || !run_.events.wait_until_written();
  if (is_held_ && flushing_.async().is_idle())
    run_.shared_log.warning(
        "{} does not answer, so the records of the run there could not be closed: the next run may "
        "have to wait 20 s for a sign of life of this one",
        run_.settings.prefix);
}

/// Threads that a destructor would join are ended by another one, which is not waited for without
/// an end.
bool Session::leave() {
  const auto end_threads = [this] {
    prefix_.owner().stop_heartbeat();
    halting_.stop_watch();
  };
  const bool are_copies_at_rest = flushing_.async().stop();
  const bool have_ended =
      closing_.carry_out(run_.background, run_.clock, longest_leaving_us, end_threads);
  is_held_ = !are_copies_at_rest || !have_ended || !run_.events.wait_until_written();
  return !is_held_;
}

// --- which calls are allowed when: the same verdict on all ranks ---

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
  run_.events.called();
  flushing_.copies().take_in();
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
Status Session::wrong_state(std::string_view call, Phase required) const {
  const auto bracket_of = [](Phase phase) { return brackets[static_cast<std::size_t>(phase) - 1]; };
  if (phase_ == Phase::idle)
    return fail(Code::wrong_state,
                "{} in state {}: call {} first (if the program did, that call failed)", call,
                state_name(), bracket_of(required).start);
  const std::string label = phase_ == Phase::restart
                                ? "the restart from " + restarting_.candidate()->label()
                                : writer_.current().label();
  return fail(Code::wrong_state, "{} in state {}: {} is not completed. Call {} first", call,
              state_name(), label, bracket_of(phase_).complete);
}

Status Session::refuse(std::string_view call, std::string_view legal) {
  CAIRN_TRY(check_same_call(comm_, call, state_name()));
  return fail(Code::wrong_state, "{} is not allowed in state {}, only in state {}", call,
              state_name(), legal);
}

// --- writing ---

namespace {

std::string text_of_arguments(const std::string& name, std::uint32_t flags) {
  std::string text;
  if ((flags & flag_checkpoint) != 0) text = "SCR_FLAG_CHECKPOINT";
  if ((flags & flag_output) != 0) text += text.empty() ? "SCR_FLAG_OUTPUT" : " | SCR_FLAG_OUTPUT";
  const std::uint32_t others = flags & ~(flag_checkpoint | flag_output);
  if (others != 0 || text.empty()) text = std::to_string(flags);
  return fmt::format("name \"{}\", flags {}", name, text);
}

}  // namespace

Status Session::start(Phase phase, const std::string& name, std::uint32_t flags) {
  const bool checkpoint = phase == Phase::checkpoint;
  const char* call = checkpoint ? "SCR_Start_checkpoint" : "SCR_Start_output";
  const Uuid mine = run_.rank == 0 ? writer_.draw_uuid() : Uuid{};
  std::array<std::int64_t, 2> uuid = {mine.time_us, mine.chance};
  CAIRN_TRY(enter(call, Phase::idle, checkpoint ? "" : text_of_arguments(name, flags), uuid));
  const std::int64_t called_us = run_.clock.steady_us();
  finish_protection();
  flushing_.look_for_absent_prefix(comm_);
  uuid[0] = std::max(uuid[0], prefix_.owner().highest().time_us + 1);
  CAIRN_TRY(restarting_.check_ranks());
  CAIRN_TRY(restarting_.refusal());
  if ((flags & ~(flag_checkpoint | flag_output)) != 0)
    return fail(Code::bad_argument,
                "{}: flags {} have bits other than SCR_FLAG_CHECKPOINT and SCR_FLAG_OUTPUT", call,
                flags);
  if (name.size() > longest_path)
    return fail(Code::bad_argument, "{}: the name has {} bytes; at most {} are allowed", call,
                name.size(), longest_path);
  const Status begun = writer_.begin(comm_, {uuid[0], uuid[1]}, name, flags, called_us);
  if (!begun) note_failed_start(begun, flags);
  CAIRN_TRY(begun);
  phase_ = phase;
  const auto computed_us = static_cast<double>(called_us - computes_since_us_);
  run_.events.happened("COMPUTE_END", DatasetInfo{}, computed_us * 1e-6);
  run_.events.happened(writer_.current().info.is_checkpoint() ? "CHECKPOINT_START" : "OUTPUT_START",
                       writer_.current().info);
  return {};
}

/// Where an older dataset waits for room, this error has said so.
void Session::note_failed_start(const Status& why, std::uint32_t flags) {
  if (late_.waits_for_room()) late_failure_ = {};
  if (run_.rank == 0 && (flags & flag_checkpoint) != 0) count(why);
}

Status Session::complete(Phase phase, bool valid) {
  const auto files = phase_ == phase ? writer_.collect_files(valid) : std::vector<FileEntry>{};
  const NameEvidence mine = writer_.evidence();
  std::array<std::int64_t, 3> of_all = {files ? 0 : 1, mine[0], mine[1]};
  const char* call = phase == Phase::checkpoint ? "SCR_Complete_checkpoint" : "SCR_Complete_output";
  CAIRN_TRY(enter(call, phase, "", of_all));
  phase_ = Phase::idle;
  const CachedDataset& current = writer_.current();
  const Status done = writer_.end(comm_, files, of_all[0] != 0, {of_all[1], of_all[2]});
  const bool is_checkpoint = current.info.is_checkpoint();
  at_checkpoint_ = done && is_checkpoint;
  if (at_checkpoint_) restarting_.note_checkpoint();
  const bool is_due_later = done && late_.is_busy();
  const Status flushed = done && !is_due_later ? flushing_.flush_after(comm_, current) : Status{};
  log_computing();
  if (is_checkpoint) last_answer_was_no_ = false;
  if (is_checkpoint && run_.rank == 0) count(done);
  return with_late_failure(done ? flushed : done);
}

/// Every call that depends on which datasets are protected comes here first.
void Session::finish_protection(bool waits) {
  const auto end = late_.take_in(comm_, waits, phase_ == Phase::ended);
  if (!end) return;
  Status over = end->protected_;
  if (over) {
    const CachedDataset is_protected = *cached_.find(end->dataset.uuid);
    over = flushing_.flush_after(comm_, is_protected);
  }
  const bool is_known = !over && end->is_retry && phase_ != Phase::ended;
  if (!is_known && (!over || end->is_retry)) late_failure_ = std::move(over);
}

/// A call that fails itself says so first.
Status Session::with_late_failure(Status status) {
  return status ? std::exchange(late_failure_, Status{}) : status;
}

/// What a checkpoint has come to, for when the next one is due and whether one is to be made.
void Session::count(const Status& checkpoint) {
  const std::int64_t now_us = run_.clock.steady_us();
  if (!checkpoint) return cadence_.failed(now_us);
  cadence_.made(writer_.started_us(), now_us);
  halting_.count_checkpoint();
}

// --- restarting ---

Result<std::optional<std::string>> Session::have_restart() {
  CAIRN_TRY(enter("SCR_Have_restart", Phase::idle));
  finish_protection();
  CAIRN_TRY(flushing_.wait_for_copies(comm_));
  CAIRN_TRY(restarting_.find(comm_));
  const CachedDataset* candidate = restarting_.candidate();
  if (candidate == nullptr) return std::nullopt;
  return candidate->info.name;
}

Result<std::string> Session::start_restart() {
  CAIRN_TRY(enter("SCR_Start_restart", Phase::idle));
  finish_protection();
  CAIRN_TRY(flushing_.wait_for_copies(comm_));
  CAIRN_TRY(restarting_.begin(comm_));
  phase_ = Phase::restart;
  return restarting_.candidate()->info.name;
}

Status Session::complete_restart(bool valid) {
  CAIRN_TRY(enter("SCR_Complete_restart", Phase::restart));
  CAIRN_TRY(flushing_.wait_for_copies(comm_));
  phase_ = Phase::idle;
  const DatasetInfo info = restarting_.candidate()->info;
  const std::string label = restarting_.candidate()->label();
  Status verdict =
      agree(comm_, valid ? Status{}
                         : Status(fail(Code::invalid, "{}: rank {} could not restart from it",
                                       label, run_.rank)));
  restarting_.end(comm_, verdict);
  // Numbers of datasets that are still there are not given again.
  if (verdict) run_.last.checkpoint = info.checkpoint;
  return verdict;
}

// --- files ---

Result<std::string> Session::route_file(const std::string& path) {
  run_.events.called();
  if (phase_ == Phase::checkpoint || phase_ == Phase::output) {
    auto place = routing_.write_to(path);
    if (!place) place.error().is_reported = prefix_.owner().is_missing();
    return place;
  }
  if (phase_ != Phase::restart) return path;
  return restart_files_.route(*restarting_.candidate(), path);
}

std::string Session::route_loaded(const std::string& path) {
  const CachedDataset* candidate = restarting_.candidate();
  if (candidate == nullptr || !candidate->checked) return path;
  return restart_files_.find(*candidate, path, phase_ == Phase::restart).value_or(path);
}

std::vector<std::string> Session::restart_names() const {
  std::vector<std::string> names;
  if (phase_ != Phase::restart) return names;
  for (const FileEntry& file : restarting_.candidate()->record.files) names.push_back(file.name);
  return names;
}

// --- by name ---

namespace {

/// A name that the prefix directory does not know may be one of the cache's only.
Status unless_absent(Status status) {
  return !status && status.error().code == Code::not_found ? Status{} : status;
}

}  // namespace

Status Session::current(const std::string& name) {
  CAIRN_TRY(enter("SCR_Current", Phase::idle, fmt::format("name \"{}\"", name)));
  finish_protection();
  CAIRN_TRY(flushing_.wait_for_copies(comm_));
  if (name.empty()) {
    CAIRN_TRY(restarting_.check_ranks());
    return fail(Code::bad_argument, "SCR_Current: the name is NULL or empty");
  }
  const auto there = prefix_.current(comm_, name);
  // What is there a program of any number of ranks can have read.
  if (!there) CAIRN_TRY(restarting_.check_ranks());
  std::optional<DatasetInfo> named = find_in_cache(name);
  if (there && (!named || named->uuid < there->uuid)) named = *there;
  const Status status = unless_absent(there ? Status{} : Status(tl::unexpected(there.error())));
  if (!named && !status) return status;  // nothing was gone back to: a restart is still to come
  restarting_.go_back_to(comm_, named ? &*named : nullptr);
  if (run_.settings.drop_after_current) flushing_.copies().forget_uncached();
  if (named && named->is_checkpoint()) run_.last.checkpoint = named->checkpoint;
  return status;
}

std::optional<DatasetInfo> Session::find_in_cache(const std::string& name) {
  for (const CachedDataset& dataset : cached_.all())
    if (dataset.info.name == name) return dataset.info;
  return std::nullopt;
}

Status Session::drop(const std::string& name) {
  CAIRN_TRY(enter("SCR_Drop", Phase::idle, fmt::format("name \"{}\"", name)));
  finish_protection();
  CAIRN_TRY(flushing_.wait_for_copies(comm_));
  // What is read where it is goes with its entry; there may be another.
  cached_.forget_if([&](const CachedDataset& dataset) {
    return dataset.in_prefix() && dataset.info.name == name;
  });
  restarting_.reconsider_refusal();
  flushing_.copies().doubt_all_named(name);
  return unless_absent(prefix_.drop(comm_, name));
}

/// 1 for each of the datasets that has this name and may be removed, 0 for the others. Not every
/// rank has a record of one that cannot be restored.
std::vector<std::int64_t> Session::find_named(const std::string& name) {
  std::vector<std::int64_t> named;
  for (const CachedDataset& dataset : cached_.all()) {
    const bool it_is = dataset.info.name == name || dataset.name_here == name;
    named.push_back(it_is && !is_left_alone(dataset.state) ? 1 : 0);
  }
  if (!named.empty()) comm_.allreduce(named, Reduce::max);
  return named;
}

Status Session::remove(const std::string& name) {
  CAIRN_TRY(enter("SCR_Delete", Phase::idle, fmt::format("name \"{}\"", name)));
  finish_protection();
  CAIRN_TRY(flushing_.wait_for_copies(comm_));
  CAIRN_TRY(prefix_.check_removal(comm_, name));  // what must stay there stays in the caches too
  flushing_.copies().doubt_all_named(name);
  remove_cached(find_named(name));
  return unless_absent(prefix_.remove(comm_, name));
}

Result<std::set<std::string>> Session::remove_from_caches(
    const std::function<bool(const std::string& file)>& goes) {
  CAIRN_TRY(enter("remove_from_caches", Phase::idle));
  finish_protection();
  CAIRN_TRY(flushing_.wait_for_copies(comm_));
  std::vector<std::int64_t> which;
  for (const CachedDataset& dataset : cached_.all()) {
    const auto& files = dataset.record.files;
    const bool has_one = std::any_of(files.begin(), files.end(),
                                     [&](const FileEntry& file) { return goes(file.name); });
    which.push_back(has_one && !is_left_alone(dataset.state) ? 1 : 0);
  }
  if (!which.empty()) comm_.allreduce(which, Reduce::max);
  return remove_cached(which);
}

/// Those that are marked by 1. Their names, as far as this rank knows them.
std::set<std::string> Session::remove_cached(const std::vector<std::int64_t>& which) {
  std::set<std::string> names;
  for (std::size_t i = which.size(); i-- > 0;) {
    if (which[i] == 0) continue;
    names.insert(cached_.all()[i].info.name);
    cached_.remove(comm_, cached_.all()[i]);
    cached_.forget(cached_.all()[i]);
  }
  cached_.wait_for_removal(comm_);  // the room is there when this returns, on every rank's node
  restarting_.reconsider_refusal();
  return names;
}

// --- what a dataset survives ---

Safety Session::safety_of(const std::string& name) const {
  const bool is_writing = phase_ == Phase::checkpoint || phase_ == Phase::output;
  if (is_writing && writer_.current().info.name == name) return Safety::writing;
  return safety_.of(name);
}

Result<bool> Session::wait_for(const std::string& name, Safety wanted, double seconds) {
  CAIRN_TRY(enter(
      "Cairn_Wait", Phase::idle,
      fmt::format("name \"{}\", state {}, seconds {}", name, static_cast<int>(wanted), seconds)));
  if (name.empty()) return fail(Code::bad_argument, "Cairn_Wait: the name is NULL or empty");
  if (wanted < Safety::writing || wanted > Safety::flushed)
    return fail(Code::bad_argument,
                "Cairn_Wait: the state {} is none of CAIRN_STATE_WRITING to CAIRN_STATE_FLUSHED",
                static_cast<int>(wanted));
  if (std::isnan(seconds)) return fail(Code::bad_argument, "Cairn_Wait: seconds is not a number");
  const bool depends_on_protection = (wanted >= Safety::protected_ && late_.is_about(name)) ||
                                     (wanted == Safety::flushed && late_.supersedes(name));
  const WaitEnd end = WaitEnd::in(seconds, run_.clock.steady_us());
  if (depends_on_protection) {
    if (end.only_looks) CAIRN_TRY(late_.why_it_waits());
    if (!late_.wait_until(comm_, end.steady_us)) return false;
    finish_protection();
    CAIRN_TRY(late_.why_it_waits());
  } else if (wanted > Safety::written && late_.is_busy()) {
    // A copy that begins now could be one of what the job removes.
    const auto is_reached = safety_.wait(comm_, name, wanted, WaitEnd::at_once());
    if (!is_reached || *is_reached) return is_reached;
    if (!late_.wait_until(comm_, end.steady_us))
      return safety_.wait(comm_, name, wanted, WaitEnd::at_once());
    finish_protection();
  }
  return safety_.wait(comm_, name, wanted, end);
}

// --- when to checkpoint, when to stop ---

/// Rank 0 knows whether the run is to stop, and then all do. `due` goes from rank 0 to all as well.
void Session::learn_from_rank_0(bool& due) {
  std::array<std::int64_t, 2> known{};
  if (run_.rank == 0) known = {static_cast<std::int64_t>(halting_.look()), due ? 1 : 0};
  comm_.bcast(mutable_bytes_of(known), 0);
  halting_state_ = static_cast<Halting::State>(known[0]);
  due = known[1] != 0;
}

Result<bool> Session::need_checkpoint() {
  CAIRN_TRY(enter("SCR_Need_checkpoint", Phase::idle));
  finish_protection(false);
  bool due = run_.rank == 0 && cadence_.due(run_.clock.steady_us(), late_.is_busy());
  learn_from_rank_0(due);
  const bool goes_on = halting_state_ == Halting::State::goes_on;
  const bool needed = goes_on ? due : !stops_at_once();
  if (!needed && goes_on) warn_if_never_due();
  last_answer_was_no_ = !needed;
  return needed;
}

/// Once in a run.
void Session::warn_if_never_due() {
  if (cadence_.is_ever_due() || !never_due_.is_first()) return;
  run_.shared_log.warning(
      "SCR_Need_checkpoint says no until the job is asked to stop, because none of "
      "SCR_CHECKPOINT_INTERVAL, SCR_CHECKPOINT_SECONDS and SCR_CHECKPOINT_OVERHEAD is set. A "
      "program that relies on it writes no checkpoint, and a failure loses all that it has "
      "computed. Set one of them: for example, SCR_CHECKPOINT_SECONDS=600 asks for a checkpoint "
      "every ten minutes");
}

/// A request that comes between the two questions waits for the next SCR_Need_checkpoint: else a
/// program that has just got the answer to go on would stop without its last checkpoint.
Result<bool> Session::should_exit() {
  CAIRN_TRY(enter("SCR_Should_exit", Phase::idle));
  bool due = false;
  learn_from_rank_0(due);
  const bool needs_one_first = std::exchange(last_answer_was_no_, false) && !stops_at_once();
  const bool exits = halting_state_ != Halting::State::goes_on && !needs_one_first;
  if (exits) log_exit();
  return exits;
}

Result<bool> Session::may_end_here() {
  CAIRN_TRY(enter("SCR_Should_exit", Phase::idle));
  bool due = false;
  learn_from_rank_0(due);
  return stops_at_once() || (halting_state_ != Halting::State::goes_on && at_checkpoint_);
}

/// Job control takes a program that ends without it for one that finished by itself.
void Session::log_exit() {
  if (exit_.is_first()) run_.events.happened("SHOULD_EXIT");
}

}  // namespace cairn
