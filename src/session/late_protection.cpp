#include "session/late_protection.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/units.hpp"
#include "files/unmapped_files.hpp"
#include "recovery/commit.hpp"

namespace cairn {

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
    UnmappedFiles files(inner, stop);
    try {
      status = protect(behind, files, clock);
    } catch (const std::exception& error) {
      why_broken = error.what();
      throw;
    }
    ended_us = clock.steady_us();
    is_broken = false;
  }

  /// Collective. Every try is a generation of its own.
  Status protect(Communicator& comm, Files& files, Clock& clock) {
    const std::uint64_t before = record.encoding.generation;
    record = written;
    record.exposure.reset();
    record.encoding = encoding;
    record.encoding.generation = later_generation(comm, clock, before);
    return protect_written(comm, files, store, folder, record, encode_bytes, has_committed);
  }

  /// However the work on it ends.
  struct Ending {
    explicit Ending(Job& its_job) : job(its_job) {}
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;
    ~Ending() { job.has_ended = true; }
    Job& job;
  };

  Files& inner;
  Store store;
  const Encoding encoding;
  const bool will_survive_nodes;
  const std::uint64_t encode_bytes;
  const DatasetInfo info;
  const RankFolder folder;
  const RankRecord written;
  RankRecord record;  ///< as it is to be protected
  Status status;
  bool has_committed = false;  ///< this rank has
  bool is_broken = true;       ///< an exception has ended it: the ranks have lost each other
  std::string why_broken = "its thread has ended";
  std::int64_t begun_us = 0;
  std::int64_t ended_us = 0;
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
      "CAIRN_PROTECT=behind has no effect in this run, and checkpoints are protected before the "
      "call that completes them returns: {}",
      possible.error().text);
}

Status LateProtection::can_go_behind() const {
  if (behind_ == nullptr) return fail(Code::disabled, "the ranks are connected by MPI only");
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

void LateProtection::begin(const CachedDataset& dataset, const Level& level) {
  job_ = std::make_shared<Job>(run_.files, run_.stores[dataset.store], dataset, level,
                               run_.settings.encode_bytes);
  job_->begun_us = run_.clock.steady_us();
  behind_->post(
      dataset.record.data_bytes(),
      [job = job_, clock = &run_.clock,
       // Where the task is dropped and never begun, that ends the job too.
       ending = std::make_shared<Job::Ending>(*job_)](
          Communicator& comm, const std::stop_token& stop) { job->run(comm, *clock, stop); });
}

bool LateProtection::is_about(const std::string& name) const {
  return job_ && job_->info.name == name;
}

/// The last step of a job is that all ranks agree that each has committed.
bool LateProtection::is_protected(const Uuid& dataset) const {
  return job_ && job_->info.uuid == dataset && job_->has_ended && !job_->is_broken &&
         job_->status && job_->will_survive_nodes;
}

bool LateProtection::wait_until(Communicator& comm, std::int64_t end_us) {
  constexpr std::int64_t longest_pause_us = 2'000;
  for (std::int64_t pause_us = 50; job_; pause_us = std::min(2 * pause_us, longest_pause_us)) {
    std::array<std::int64_t, 2> any = {!job_->has_ended, run_.clock.steady_us() >= end_us};
    comm.allreduce(any, Reduce::max);
    if (any[0] == 0) return true;
    if (any[1] != 0) return false;
    run_.clock.sleep_us(pause_us);
  }
  return true;
}

std::optional<LateProtection::End> LateProtection::take_in(Communicator& comm, bool waits,
                                                           bool at_end) {
  if (!job_) return std::nullopt;
  if (waits) wait_for_thread();
  const bool has_ended = job_->has_ended;
  std::array<std::int64_t, 2> any = {!has_ended, has_ended && job_->is_broken};
  comm.allreduce(any, Reduce::max);
  const auto [is_running, is_broken] = any;
  if (is_running != 0) return std::nullopt;
  Status done = is_broken != 0 ? Status{} : agree(comm, job_->status);
  if (is_broken != 0) {
    const Status why =
        agree(comm, job_->is_broken ? fail(Code::disabled, "{}", job_->why_broken) : Status{});
    run_.shared_log.warning(
        "the ranks cannot reach each other in the background any more, so from here on checkpoints "
        "are protected before the call that completes them returns: {}",
        why.error().text);
    behind_ = nullptr;
  }
  if (is_broken != 0 || (!done && done.error().code != Code::invalid)) done = protect_here(comm);
  settle(comm, done, at_end);
  return End{std::exchange(job_, nullptr)->info, std::move(done)};
}

/// The program is blocked meanwhile.
void LateProtection::wait_for_thread() {
  constexpr double shortest_logged_s = 0.001;
  const std::int64_t from_us = run_.clock.steady_us();
  behind_->wait();
  const double seconds = run_.seconds_since(from_us);
  if (seconds >= shortest_logged_s) run_.events.happened("PROTECT_WAIT", job_->info, seconds);
}

/// A rank that has committed proves that all had prepared: then the others commit too, and nothing
/// is prepared anew over that. Else what the job has made counts for nothing.
Status LateProtection::protect_here(Communicator& comm) {
  Status done;
  if (allreduce(comm, job_->has_committed ? 1 : 0, Reduce::max) != 0) {
    // Where that fails, the next run finds the prepared record.
    if (!job_->has_committed) run_.warn_if(commit_prepared(run_.files, job_->store, job_->folder));
  } else {
    const std::uint64_t before = job_->record.encoding.generation;
    if (before != job_->written.encoding.generation)
      run_.warn_if(remove_all(run_.files, job_->folder.parity(before)));
    done = job_->protect(comm, run_.files, run_.clock);
  }
  job_->ended_us = run_.clock.steady_us();
  return done;
}

void LateProtection::settle(Communicator& comm, const Status& done, bool at_end) {
  CachedDataset& dataset = *cached_.find(job_->info.uuid);
  if (done) {
    dataset.record = job_->record;
    dataset.state = CacheState::protected_;
    dataset.survives_nodes = job_->will_survive_nodes;
    log_exposure(comm);
    return;
  }
  const bool stays = at_end && done.error().code != Code::invalid;
  run_.shared_log.warning("{} is written and cannot be protected{}: {}", dataset.label(),
                          stays ? "; the next run tries again" : ", so it is removed",
                          done.error().text);
  if (stays) return;
  Error why = done.error();
  const std::size_t store = dataset.store;
  cached_.remove(comm, dataset);
  cached_.forget(dataset);
  cached_.make_room_after(comm, why, store);
}

void LateProtection::log_exposure(Communicator& comm) {
  const auto exposed_us = allreduce(comm, job_->ended_us - job_->begun_us, Reduce::max);
  const double seconds = static_cast<double>(exposed_us) * 1e-6;
  run_.events.made("PROTECT_END", job_->info, seconds, job_->store.settings().path,
                   name_of(job_->encoding.scheme), job_->encoding.members.size());
  if (std::exchange(has_logged_exposure_, true) && run_.settings.debug == 0) return;
  run_.shared_log.info("dataset {} ({}) is protected, {} after it was written", job_->info.number,
                       job_->info.name, format_seconds(seconds));
}

}  // namespace cairn
