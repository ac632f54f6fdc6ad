#include "session/session.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "session/recover_cache.hpp"

namespace cairn {

// --- init and finalize ---

Session::Session(const Environment& environment, const Settings& settings)
    : comm_(environment.comm),
      run_(environment.comm, environment.files, environment.clock, environment.background,
           environment.log, settings),
      cached_(run_),
      prefix_(
          run_.files, run_.clock, run_.background, run_.settings, run_.shared_log, run_.events,
          [this] { return cached_.parts(); },
          [this] {
            return check_prefix_identity(run_.files, run_.settings.prefix, run_.identity);
          }),
      flushing_(run_, cached_, prefix_),
      late_(run_, cached_, environment.behind),
      calls_(comm_, run_, cached_, flushing_, late_),
      routing_(run_.files, run_.settings.prefix),
      writer_(run_, cached_, prefix_, flushing_, late_, routing_),
      restart_files_(run_, cached_, routing_),
      restarting_(run_, cached_, prefix_, flushing_, restart_files_),
      datasets_(calls_, run_, cached_, prefix_, flushing_, restarting_),
      safety_(calls_, run_, cached_, flushing_, late_, writer_),
      schedule_(calls_, run_, late_) {
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
  schedule_.begin();
  if (flushes_any_async(run_.settings)) wait_for_no_file();
  log_computing();
  return {};
}

/// From here on no call waits for a file of the prefix directory that only describes the run.
void Session::wait_for_no_file() {
  run_.events.write_behind(run_.background);
  schedule_.watch();
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
  CAIRN_TRY(calls_.enter("SCR_Finalize", Phase::idle));
  calls_.go_to(Phase::ended);
  calls_.finish_protection(Calls::Waits::for_protection);
  const std::int64_t longest_us = schedule_.time_for_copies_us();
  const Status all_copied =
      run_.losses.before(calls_.with_late_failure(flushing_.flush_at_end(comm_, longest_us)));
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
  const bool is_async = flushes_any_async(run_.settings);
  const std::int64_t waits_us = hangs         ? 0
                                : is_in_hurry ? longest_closing_in_hurry_us
                                              : longest_closing_us;
  const auto close = [this, is_copying = !flushing_.async().is_idle(), last = std::move(last),
                      is_async, waits_us, from_us = run_.clock.steady_us()] {
    if (!is_copying) prefix_.owner().close();  // else the thread that copies has its keeper
    const double longest_s = static_cast<double>(waits_us) * 1e-6;
    if (is_async)
      run_.events.waited("ASYNC_FLUSH_WAIT", {}, std::min(run_.seconds_since(from_us), longest_s),
                         "the end of the run's records");
    run_.events.happened("FINALIZE");
    schedule_.end();
    if (last) last();
  };
  if (!is_async) return close();
  const bool is_closed = closing_.carry_out(run_.background, run_.clock, waits_us, close);
  is_held_ = hangs || !is_closed || !run_.events.wait_until_written();
  if (is_held_)
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
    schedule_.stop_watch();
  };
  const bool are_copies_at_rest = flushing_.async().stop();
  const bool have_ended =
      closing_.carry_out(run_.background, run_.clock, longest_leaving_us, end_threads);
  is_held_ = !are_copies_at_rest || flushing_.async().awaits_answer() || !have_ended ||
             !run_.events.wait_until_written();
  return !is_held_;
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
  CAIRN_TRY(
      calls_.enter(call, Phase::idle, checkpoint ? "" : text_of_arguments(name, flags), uuid));
  const std::int64_t called_us = run_.clock.steady_us();
  calls_.finish_protection(Calls::Waits::for_copies);
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
  if (!begun) note_failed_start(flags);
  CAIRN_TRY(begun);
  calls_.go_to(phase, writer_.current().label());
  const auto computed_us = static_cast<double>(called_us - computes_since_us_);
  run_.events.happened("COMPUTE_END", DatasetInfo{}, computed_us * 1e-6);
  run_.events.happened(writer_.current().info.is_checkpoint() ? "CHECKPOINT_START" : "OUTPUT_START",
                       writer_.current().info);
  return {};
}

/// Where that is because an older dataset waits for room, this error has said so.
void Session::note_failed_start(std::uint32_t flags) {
  if (writer_.is_refused_for_older()) calls_.forget_late_failure();
  if ((flags & flag_checkpoint) != 0) schedule_.note_failed_start();
}

Status Session::complete(Phase phase, bool valid) {
  const auto files =
      calls_.phase() == phase ? writer_.collect_files(valid) : std::vector<FileEntry>{};
  const NameEvidence mine = writer_.evidence();
  std::array<std::int64_t, 3> of_all = {files ? 0 : 1, mine[0], mine[1]};
  const char* call = phase == Phase::checkpoint ? "SCR_Complete_checkpoint" : "SCR_Complete_output";
  CAIRN_TRY(calls_.enter(call, phase, "", of_all));
  calls_.go_to(Phase::idle);
  const CachedDataset& current = writer_.current();
  const Status done = writer_.end(comm_, files, of_all[0] != 0, {of_all[1], of_all[2]});
  const bool is_checkpoint = current.info.is_checkpoint();
  if (done && is_checkpoint) restarting_.note_checkpoint();
  const bool is_due_later = done && late_.is_busy();
  if (done && !is_due_later) late_.note_made();
  Status flushed;
  if (done && !is_due_later) flushed = flushing_.flush_after(comm_, current, true).status;
  log_computing();
  schedule_.note_complete(done, is_checkpoint, writer_.started_us());
  // One that fails itself says so first.
  return done ? run_.losses.before(calls_.with_late_failure(flushed)) : done;
}

// --- restarting ---

Result<std::optional<std::string>> Session::have_restart() {
  CAIRN_TRY(calls_.enter_alone("SCR_Have_restart"));
  CAIRN_TRY(restarting_.find(comm_));
  const CachedDataset* candidate = restarting_.candidate();
  if (candidate == nullptr) return std::nullopt;
  return candidate->info.name;
}

Result<std::string> Session::start_restart() {
  CAIRN_TRY(calls_.enter_alone("SCR_Start_restart"));
  CAIRN_TRY(restarting_.begin(comm_));
  const CachedDataset& candidate = *restarting_.candidate();
  calls_.go_to(Phase::restart, "the restart from " + candidate.label());
  return candidate.info.name;
}

Status Session::complete_restart(bool valid) {
  CAIRN_TRY(calls_.enter("SCR_Complete_restart", Phase::restart));
  CAIRN_TRY(flushing_.wait_for_copies(comm_));
  CAIRN_TRY(flushing_.wait_for_answer(comm_));
  calls_.go_to(Phase::idle);
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
  if (calls_.is_writing()) {
    auto place = routing_.write_to(path);
    if (!place) place.error().is_reported = prefix_.owner().is_missing();
    return place;
  }
  if (calls_.phase() != Phase::restart) return path;
  return restart_files_.route(*restarting_.candidate(), path);
}

std::string Session::route_loaded(const std::string& path) {
  const CachedDataset* candidate = restarting_.candidate();
  if (candidate == nullptr || !candidate->checked) return path;
  return restart_files_.find(*candidate, path, calls_.phase() == Phase::restart).value_or(path);
}

std::vector<std::string> Session::restart_names() const {
  std::vector<std::string> names;
  if (calls_.phase() != Phase::restart) return names;
  for (const FileEntry& file : restarting_.candidate()->record.files) names.push_back(file.name);
  return names;
}

}  // namespace cairn
