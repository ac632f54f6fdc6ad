#include "session/late_protection.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/units.hpp"
#include "files/unmapped_files.hpp"
#include "recovery/commit.hpp"
#include "recovery/written.hpp"

namespace cairn {
namespace {

/// Blocks are read into buffers here, while the program goes on (ADR 11): with more of them at once
/// a block has left the processor's cache before another member copies it.
constexpr std::uint64_t most_encode_bytes = 1 << 20;

Error cannot_be_protected(const DatasetInfo& dataset, bool is_here, Error why) {
  why.text = fmt::format(
      "dataset {} ({}) {}: {}", dataset.number, dataset.name,
      is_here ? "is written and cannot be protected now" : "could not be protected, and is removed",
      why.text);
  return why;
}

/// The rank that a program waits for.
constexpr std::chrono::milliseconds reported_every = std::chrono::seconds(10);

}  // namespace

Spread Spread::of(std::int64_t begin_us, std::optional<std::int64_t> last_made_us) {
  constexpr std::int64_t longest_us = 60'000'000;
  if (!last_made_us) return {begin_us, 0};
  const std::int64_t deadline_us = std::min((begin_us - *last_made_us) / 2, longest_us);
  return {begin_us, deadline_us / 8 * 7};
}

bool Spread::is_late(std::int64_t now_us, std::uint64_t done, std::uint64_t all) const {
  const auto passed_us = static_cast<double>(now_us - begin_us);
  return passed_us * static_cast<double>(all) >=
         static_cast<double>(done) * static_cast<double>(length_us);
}

/// The thread writes it until `has_ended`, and nothing of it afterwards. It may outlive the
/// session.
struct LateProtection::Job {
  Job(Files& files, Store its_store, const CachedDataset& dataset, const Level& level,
      std::uint64_t its_encode_bytes)
      : inner(files),
        store(std::move(its_store)),
        encoding(level.encoding),
        will_survive_nodes(survives_nodes(level, store)),
        encode_bytes(its_encode_bytes),
        info(dataset.info),
        folder(dataset.parts[0]),
        written(dataset.record),
        record(dataset.record) {}

  void run(Communicator& behind, Clock& clock, const std::stop_token& stop) {
    const Ending ending(*this);
    const Pieces pieces(idle_cores.get());
    const auto before_read = [&](std::uint64_t bytes) {
      give_way(clock, stop);
      done_bytes += bytes;
    };
    UnmappedFiles files(inner, stop, before_read,
                        [this] { return is_waited_out && !store.durable(); });
    try {
      status = protect(behind, files, clock);
      ended_us = clock.steady_us();
      has_all_committed = status.has_value();
      if (status) {
        give_way(clock, stop);
        remove_superseded(behind);
      }
    } catch (const std::exception& error) {
      why_broken = error.what();
      throw;
    }
    is_broken = false;
  }

  /// The program goes first while the work is in time, unless it waits for it.
  void give_way(Clock& clock, const std::stop_token& stop) {
    if (!idle_cores) return;
    idle_cores->give_way([&] {
      return is_awaited || stop.stop_requested() ||
             spread.is_late(clock.steady_us(), done_bytes, written.data_bytes());
    });
  }

  /// All ranks have committed.
  void remove_superseded(Communicator& behind) {
    if (superseded.empty()) return;
    for (const Removal& removal : superseded) removal.remove_records();
    behind.barrier();
    for (Removal& removal : superseded) removal.remove_data();
  }

  /// Collective. Every try is a generation of its own.
  Status protect(Communicator& comm, Files& files, Clock& clock) {
    const std::uint64_t before = record.encoding.generation;
    record = written;
    record.exposure.reset();
    record.encoding = encoding;
    record.encoding.generation = later_generation(comm, clock, before);
    return protect_written(comm, files, store, folder, record, encode_bytes, mine);
  }

  /// However the work on it ends.
  struct Ending {
    explicit Ending(Job& its_job) : job(its_job) {}
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;
    ~Ending() { job.has_ended = true; }
    Job& job;
  };

  /// The thread does other tasks later.
  struct Pieces {
    explicit Pieces(IdleCores* their_cores) : cores(their_cores) {}
    Pieces(const Pieces&) = delete;
    Pieces& operator=(const Pieces&) = delete;
    ~Pieces() {
      if (cores != nullptr) cores->give_back();
    }
    IdleCores* cores;
  };

  Files& inner;
  Store store;
  const Encoding encoding;
  const bool will_survive_nodes;
  const std::uint64_t encode_bytes;
  const DatasetInfo info;
  const RankFolder folder;
  const RankRecord written;
  std::vector<Removal> superseded;  ///< on all ranks the same datasets
  std::shared_ptr<IdleCores> idle_cores;
  Spread spread;
  RankRecord record;  ///< as it is to be protected
  Status status;
  LateCommit mine;        ///< over all tries
  bool is_broken = true;  ///< an exception has ended it: the ranks have lost each other
  std::string why_broken = "its thread has ended";
  /// The program's own thread only: there was no room to protect it, and it waits for that.
  std::optional<Error> lacks_room;
  /// The program's own thread only: `done_bytes` when it looked last.
  std::uint64_t seen_bytes = 0;
  std::int64_t ended_us = 0;
  std::atomic<std::uint64_t> done_bytes = 0;    ///< read
  std::atomic<bool> has_all_committed = false;  ///< all ranks have
  std::atomic<bool> is_awaited = false;         ///< the program waits for it
  std::atomic<bool> is_waited_out = false;      ///< and does nothing else until it has ended
  std::atomic<bool> has_ended = false;
};

void LateProtection::prepare(Communicator& comm) {
  bool is_asked_for = false;
  for (const Level& level : run_.levels) is_asked_for = is_asked_for || level.settings.behind;
  if (!is_asked_for) {
    behind_ = nullptr;
    return;
  }
  const Status possible = agree_to_go_behind(comm);
  if (possible) return;
  behind_ = nullptr;
  run_.shared_log.warning(
      "CAIRN_PROTECT=behind has no effect in this run, and checkpoints are protected as with "
      "CAIRN_PROTECT=now: {}",
      possible.error().text);
}

Status LateProtection::can_go_behind() const {
  if (behind_ == nullptr)
    return fail(Code::disabled, "the program makes no calls of Cairn that could return earlier");
  CAIRN_TRY(behind_->failure());
  if (run_.files.boot().empty())
    return fail(Code::disabled, "node {} does not say when it was started",
                run_.settings.node_name);
  return {};
}

Status LateProtection::agree_to_go_behind(Communicator& comm) const {
  if (!run_.settings.keep_old)
    return fail(Code::disabled, "CAIRN_KEEP_OLD=0 deletes the old checkpoint first");
  if (run_.ranks == 1) return fail(Code::disabled, "the job has one rank");
  return agree(comm, can_go_behind());
}

/// What all nodes see may be read by another node than wrote it, whose boot says nothing.
bool LateProtection::is_for(const Level& level) const {
  return behind_ != nullptr && level.settings.behind && !level.settings.bypass &&
         !run_.stores[level.store].shared();
}

/// On all ranks the same datasets.
std::vector<Removal> LateProtection::superseded_by(const CachedDataset& written) const {
  const std::vector<CachedDataset>& all = cached_.all();
  const auto keep = static_cast<std::size_t>(run_.stores[written.store].settings().count);
  const std::vector<bool> goes = find_superseded(all, written.store, keep, written.info.uuid);
  std::vector<Removal> removals;
  for (std::size_t i = 0; i < goes.size(); ++i)
    if (goes[i] && !all[i].in_prefix())
      removals.emplace_back(run_, all[i], Removal::Parity::recycled);
  return removals;
}

void LateProtection::begin(const CachedDataset& dataset, const Level& level) {
  job_ = std::make_shared<Job>(run_.files, run_.stores[dataset.store], dataset, level,
                               std::min(run_.settings.encode_bytes, most_encode_bytes));
  job_->superseded = superseded_by(dataset);
  job_->idle_cores = behind_->idle_cores();
  job_->spread = Spread::of(run_.clock.steady_us(), last_made_us_);
  last_made_us_ = job_->spread.begin_us;
  is_running_ = true;
  behind_->post(
      dataset.record.data_bytes(),
      [job = job_, clock = &run_.clock,
       // Where the task is dropped and never begun, that ends the job too.
       ending = std::make_shared<Job::Ending>(*job_)](
          Communicator& comm, const std::stop_token& stop) { job->run(comm, *clock, stop); });
}

bool LateProtection::waits_for_room() const { return job_ && job_->lacks_room; }

Status LateProtection::why_it_waits() const {
  if (!waits_for_room()) return {};
  return tl::unexpected(cannot_be_protected(job_->info, true, *job_->lacks_room));
}

Status LateProtection::refuse_another(const Level& level) const {
  Status why = is_for(level) ? why_it_waits() : Status{};
  if (!why) why.error().text = "no dataset can be written, because " + why.error().text;
  return why;
}

bool LateProtection::is_about(const std::string& name) const {
  return job_ && job_->info.name == name;
}

bool LateProtection::is_protected(const Uuid& dataset) const {
  return job_ && job_->info.uuid == dataset && job_->has_all_committed && job_->will_survive_nodes;
}

bool LateProtection::supersedes(const std::string& name) const {
  return job_ && std::any_of(job_->superseded.begin(), job_->superseded.end(),
                             [&](const Removal& each) { return each.dataset().name == name; });
}

bool LateProtection::may_have_removed(const Uuid& dataset) const {
  return job_ && job_->has_all_committed &&
         std::any_of(job_->superseded.begin(), job_->superseded.end(),
                     [&](const Removal& each) { return each.dataset().uuid == dataset; });
}

bool LateProtection::wait_until(Communicator& comm, std::int64_t end_us) {
  if (!job_) return true;
  const std::int64_t from_us = run_.clock.steady_us();
  const bool has_ended = poll_until(comm, end_us);
  log_wait(from_us);
  return has_ended;
}

bool LateProtection::poll_until(Communicator& comm, std::int64_t end_us) {
  const std::int64_t from_us = run_.clock.steady_us();
  for (auto waited = std::chrono::milliseconds(0);; waited += reported_every) {
    const bool is_over_here = run_.clock.steady_us() >= end_us;
    const auto [running, is_time_over] = ask_all(comm, {running_here(), is_over_here}, waited);
    // A look only does not hurry the work, and a wait that is over hurries it no longer.
    job_->is_awaited = running != 0 && is_time_over == 0;
    if (running == 0) return true;
    if (is_time_over != 0) return false;
    log_life(comm);
    const std::chrono::microseconds next_report = waited + reported_every;
    sleep_until_ended(std::min(end_us, from_us + next_report.count()));
  }
}

/// Local. Not longer than that, of steady time.
void LateProtection::sleep_until_ended(std::int64_t until_us) const {
  constexpr std::int64_t longest_pause_us = 2'000;
  for (std::int64_t pause_us = 50; !job_->has_ended && run_.clock.steady_us() < until_us;
       pause_us = std::min(2 * pause_us, longest_pause_us))
    run_.clock.sleep_us(pause_us);
}

/// The largest of all ranks. If the job of this rank runs, although the program has `waited`, that
/// is reported; it is 0 where it is too early.
std::array<std::int64_t, 2> LateProtection::ask_all(Communicator& comm,
                                                    std::array<std::int64_t, 2> mine,
                                                    std::chrono::milliseconds waited) {
  const std::int64_t running = mine[0];
  const bool is_late = running != 0 && waited.count() > 0;
  if (is_late) behind_->report_late(waited);
  comm.allreduce(mine, Reduce::max);
  if (is_late && running == mine[0] && run_.rank != 0) behind_->report_awaited(waited);
  return mine;
}

std::optional<LateProtection::End> LateProtection::take_in(Communicator& comm, bool waits,
                                                           bool at_end) {
  if (job_ && cached_.find(job_->info.uuid) == nullptr) job_ = nullptr;  // a call has removed it
  const bool is_retry = waits_for_room();
  if (!job_ || (is_retry && !waits)) return std::nullopt;
  const std::int64_t from_us = run_.clock.steady_us();
  const auto [running, is_broken] = look_at_jobs(comm, waits && !is_retry);
  is_running_ = running != 0;
  if (is_running_) return std::nullopt;
  Status done = is_broken != 0 ? Status{} : agree(comm, job_->status);
  const bool is_to_be_done = is_broken != 0 || (!done && done.error().code != Code::invalid);
  if (is_to_be_done && !waits) return std::nullopt;
  if (is_broken != 0) note_broken(comm);
  if (is_to_be_done) done = protect_here(comm);
  if (waits) log_wait(from_us);
  const bool are_removed = is_broken == 0 && !is_retry && job_->status.has_value();
  settle(comm, done, at_end);
  if (done && are_removed) forget_removed();
  const DatasetInfo dataset = job_->info;
  if (!waits_for_room()) job_ = nullptr;
  // A changed file is named as it is.
  if (!done && done.error().code != Code::invalid)
    done = tl::unexpected(cannot_be_protected(dataset, cached_.find(dataset.uuid) != nullptr,
                                              std::move(done).error()));
  return End{dataset, std::move(done), is_retry};
}

void LateProtection::note_broken(Communicator& comm) {
  if (behind_ == nullptr) return;  // on all ranks alike
  const Status why =
      agree(comm, job_->is_broken ? fail(Code::disabled, "{}", job_->why_broken) : Status{});
  run_.shared_log.warning(
      "the ranks cannot reach each other in the background any more, so from here on checkpoints "
      "are protected before the call that completes them returns: {}",
      why.error().text);
  behind_ = nullptr;
}

/// Where the job has not come to that on all ranks, the program removes them.
void LateProtection::forget_removed() {
  for (const Removal& removal : job_->superseded)
    if (const CachedDataset* gone = cached_.find(removal.dataset().uuid)) cached_.forget(*gone);
}

/// Where this rank is the lowest one whose job runs, no other rank has the same. 0: its job has
/// ended.
std::int64_t LateProtection::running_here() const {
  return job_->has_ended ? 0 : run_.ranks - run_.rank;
}

/// What is running on any rank, and whether a job is broken. `waits` until none runs.
std::array<std::int64_t, 2> LateProtection::look_at_jobs(Communicator& comm, bool waits) {
  for (auto waited = reported_every;; waited += reported_every) {
    if (waits) job_->is_awaited = job_->is_waited_out = true;
    const bool is_late = waits && !behind_->wait(reported_every);
    const std::int64_t running = running_here();
    const auto any = ask_all(comm, {running, running == 0 && job_->is_broken},
                             is_late ? waited : std::chrono::milliseconds(0));
    if (!waits || any[0] == 0) return any;
    log_life(comm);
  }
}

/// Collective. A run whose ranks wait for work that goes on is not hung.
void LateProtection::log_life(Communicator& comm) {
  const std::uint64_t done = job_->done_bytes;
  const bool goes_on = std::exchange(job_->seen_bytes, done) != done;
  if (allreduce(comm, goes_on ? 1 : 0, Reduce::max) != 0) run_.events.called();
}

/// The program was blocked since then.
void LateProtection::log_wait(std::int64_t from_us) const {
  run_.events.waited("PROTECT_WAIT", job_->info, run_.seconds_since(from_us));
}

/// A rank that has committed proves that all had prepared: then the others commit too, and nothing
/// is prepared anew over that. But only with them is it protected, as the loss of a node may take
/// each record that proves it. Else what a try has made counts for nothing.
Status LateProtection::protect_here(Communicator& comm) {
  // Then all records are durable, and what it supersedes may be gone.
  if (allreduce(comm, job_->has_all_committed ? 1 : 0, Reduce::max) != 0) return {};
  Status done;
  if (!has_any_committed(comm)) {
    drop_try();
    done = job_->protect(comm, run_.files, run_.clock);
  }
  if (has_any_committed(comm))
    done = agree(comm,
                 commit_prepared(run_.files, job_->store, job_->folder, job_->mine.has_committed));
  else
    drop_try();
  job_->ended_us = run_.clock.steady_us();
  return done;
}

bool LateProtection::has_any_committed(Communicator& comm) const {
  return allreduce(comm, job_->mine.has_committed ? 1 : 0, Reduce::max) != 0;
}

/// Its parity, which takes room. No rank has committed it.
void LateProtection::drop_try() {
  const std::uint64_t generation = job_->record.encoding.generation;
  if (generation != job_->written.encoding.generation)
    run_.warn_if(remove_all(run_.files, job_->folder.parity(generation)));
}

void LateProtection::settle(Communicator& comm, const Status& done, bool at_end) {
  CachedDataset& dataset = *cached_.find(job_->info.uuid);
  const bool is_reported = std::exchange(job_->lacks_room, std::nullopt).has_value();
  if (done) {
    dataset.record = job_->record;
    dataset.state = CacheState::protected_;
    dataset.survives_nodes = job_->will_survive_nodes;
    log_exposure(comm);
    return;
  }
  // A later try might take checksums of what the store has dropped.
  const bool is_unsynced = allreduce(comm, job_->mine.synced ? 0 : 1, Reduce::max) != 0;
  const bool is_over = is_unsynced || done.error().code == Code::invalid;
  const bool waits = !is_over && done.error().code == Code::no_space && !at_end;
  const bool stays = waits || (at_end && !is_over);
  if (!waits || !is_reported)
    run_.shared_log.warning(
        "{} is written and cannot be protected{}: {}", dataset.label(),
        waits   ? "; it stays as it is, and the next call that waits for it tries again"
        : stays ? "; the next run tries again"
                : ", so it is removed",
        done.error().text);
  if (waits) job_->lacks_room = done.error();
  if (stays && !waits && run_.settings.flush) settle_without_sets(comm, dataset, done.error());
  if (waits || !stays) make_room(comm, dataset, done.error(), stays);
}

/// For a copy it needs checksums, and no sets. Where a rank has committed its sets, the next run
/// commits those of the others.
void LateProtection::settle_without_sets(Communicator& comm, CachedDataset& dataset,
                                         const Error& why) {
  if (has_any_committed(comm)) return;
  const std::uint64_t generation = job_->written.encoding.generation;
  HeldPart part = read_part(run_.files, job_->folder, run_.rank);
  Status settled = settle_written(run_.files, part, generation);
  const auto own = std::find_if(part.own.begin(), part.own.end(), [&](const HeldRecord& held) {
    return held.record.encoding.generation == generation;
  });
  if (settled && own == part.own.end())
    settled = fail(Code::io, "cannot read the record in {}", job_->folder.path);
  settled = agree(comm, std::move(settled));
  if (!settled) {
    run_.shared_log.warning("{} cannot be copied either: {}", dataset.label(),
                            settled.error().text);
    return;
  }
  dataset.record = std::move(own->record);
  dataset.state = CacheState::protected_;
  dataset.weaker = why;
}

/// What there is no room to protect stays: it is as good as before, and survives the death of
/// processes.
void LateProtection::make_room(Communicator& comm, CachedDataset& dataset, Error why, bool stays) {
  const std::size_t store = dataset.store;
  if (!stays) {
    cached_.remove(comm, dataset);
    cached_.forget(dataset);
  }
  cached_.make_room_after(comm, why, store);
}

void LateProtection::log_exposure(Communicator& comm) {
  const auto exposed_us = allreduce(comm, job_->ended_us - job_->spread.begin_us, Reduce::max);
  const double seconds = static_cast<double>(exposed_us) * 1e-6;
  run_.events.made("PROTECT_END", job_->info, seconds, job_->store.settings().path,
                   name_of(job_->encoding.scheme), job_->encoding.members.size());
  if (std::exchange(has_logged_exposure_, true) && run_.settings.debug == 0) return;
  run_.shared_log.info("dataset {} ({}) is protected, {} after it was written", job_->info.number,
                       job_->info.name, format_seconds(seconds));
}

}  // namespace cairn
