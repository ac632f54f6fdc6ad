#include "session/async_flushing.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "base/units.hpp"
#include "prefix/flush_plan.hpp"
#include "prefix/manifest.hpp"
#include "recovery/restore.hpp"
#include "session/copy_limit.hpp"

namespace cairn {
namespace {

/// Of a rank: what it holds in memory of the files at a time.
constexpr std::uint64_t piece_bytes = std::uint64_t{4} << 20;

/// While tries fail and get no further than earlier ones, a call that needs the flights to end
/// waits so long, and then for the end of a try that still moves.
constexpr std::int64_t patience_with_errors_us = 5'000'000;
/// A thread that has not stopped after so long is in a call of the file system that hangs.
constexpr std::int64_t longest_stop_us = 1'000'000;

constexpr std::int64_t shortest_wait_us = 1'000;
constexpr std::int64_t longest_wait_us = 200'000;
constexpr std::int64_t told_every_us = 10'000'000;

bool is_only_checkpoint(const DatasetInfo& dataset) {
  return dataset.is_checkpoint() && !dataset.is_output();
}

}  // namespace

Status AsyncFlushing::see_epoch(Communicator& comm) {
  const Site& site = prefix_.owner().site();
  return agree(comm, see_shared(site, site.folder.epoch(site.epoch)));
}

Status AsyncFlushing::wait_for_answer(Communicator& comm, std::int64_t longest_us) {
  const std::int64_t from_us = run_.clock.steady_us();
  Status answered = check_answer(comm, longest_us);
  run_.events.waited("ASYNC_FLUSH_WAIT", {}, run_.seconds_since(from_us),
                     "an answer of the directory");
  return answered;
}

Status AsyncFlushing::check_answer(Communicator& comm, std::int64_t longest_us) {
  const auto look = [&files = run_.files, folder = prefix_.owner().site().folder] {
    (void)read_owner(files, folder);
  };
  const std::int64_t left_us = std::max(last_us_ - run_.clock.steady_us(), std::int64_t{0});
  std::int64_t is_over = left_us == 0 ? 1 : 0;
  comm.bcast(mutable_bytes_of(is_over), 0);
  if (is_over != 0) return time_is_over();
  const bool answers =
      look_.carry_out(run_.background, run_.clock, std::min(longest_us, left_us), look);
  Status answered =
      agree(comm, answers ? Status{}
                          : Status(fail(Code::io, "{} does not answer on the node of rank {}",
                                        run_.settings.prefix, run_.rank)));
  is_over = !answered && run_.clock.steady_us() >= last_us_ ? 1 : 0;
  comm.bcast(mutable_bytes_of(is_over), 0);
  return is_over != 0 ? time_is_over() : answered;
}

// --- beginning ---

Status AsyncFlushing::start(Communicator& comm, CachedDataset& dataset) {
  const Uuid uuid = dataset.info.uuid;
  if (queue_.size() >= most_in_flight) withdraw_superseded(comm, dataset.info);
  while (queue_.size() >= most_in_flight) {
    Status over = wait_for_first(comm, 0);
    if (!over && queue_.size() >= most_in_flight) return over;
  }
  CachedDataset* here = cached_.find(uuid);
  if (queue_.empty()) {
    const Site& owned = prefix_.owner().site();
    Site site{owned.files,
              owned.clock,
              owned.folder,
              owned.epoch,
              owned.ranks_on_node,
              owned.copy_metadata,
              owned.limits,
              {queue_.copying(), 1, std::min(run_.settings.io_piece_bytes, piece_bytes)},
              owned.keeper,
              &copied_,
              &run_.pace};
    site.repairs = true;
    if (run_.settings.async_bytes_per_s > 0)
      site.limits.bytes_per_s_node = run_.settings.async_bytes_per_s;
    site_.emplace(site);
  }
  auto flight = prepare(comm, *here);
  flight->deadline_us =
      run_.clock.steady_us() + rhythms_[flight->dataset.is_checkpoint() ? 1 : 0].interval_us / 2;
  queue_.add(std::move(flight));
  here->is_in_flight = true;
  return {};
}

void AsyncFlushing::note_due(const DatasetInfo& dataset) {
  Rhythm& rhythm = rhythms_[dataset.is_checkpoint() ? 1 : 0];
  if (std::exchange(rhythm.last, dataset.uuid) == dataset.uuid) return;
  const std::int64_t now_us = run_.clock.steady_us();
  if (rhythm.last_us) {
    const std::int64_t last_us = now_us - *rhythm.last_us;
    rhythm.interval_us = std::max(last_us, std::exchange(rhythm.before_us, last_us));
  }
  rhythm.last_us = now_us;
}

/// All that the processes must know of each other. From here on they need no message.
std::shared_ptr<Flight> AsyncFlushing::prepare(Communicator& comm, const CachedDataset& dataset) {
  const RankRecord& mine = dataset.record;
  const Deal deal(mine.dataset.ranks, comm.size());
  std::vector<PartFlush::WrittenManifest> manifests;
  // Each seals its own record, which cannot fail.
  (void)gather_manifests(comm, deal, dealt_records(comm, deal, {&mine, 1}),
                         [&](std::uint32_t number, Blob records) {
                           manifests.push_back({number, std::move(records)});
                         });
  const FlushTotals totals = totals_of(comm, {&mine, 1});
  auto flight = std::make_shared<Flight>();
  flight->dataset = dataset.info;
  flight->copied = &copied_;
  flight->part = std::make_unique<PartFlush>(
      *site_, mine, CachedPart{dataset.info.uuid, run_.rank, cached_.own_folder(dataset)},
      std::move(manifests));
  if (run_.rank == 0)
    flight->owner = std::make_unique<OwnerFlush>(
        *site_, record_of(mine.dataset, run_.settings.job_id), totals,
        prefix_.books(dataset, run_.stores[dataset.store].settings().path));
  return flight;
}

/// Rank 0 has begun none that it can take out, so no other rank has done anything for it. A
/// checkpoint that gives its place to an output is not begun after it: its files could replace
/// those of the output.
void AsyncFlushing::withdraw_superseded(Communicator& comm, const DatasetInfo& by) {
  const auto queued = queue_.flights();
  for (const auto& flight : queued) {
    const DatasetInfo& waiting = flight->dataset;
    // The first is begun, or as good as that.
    const bool stays = flight == queued.front() || !is_only_checkpoint(waiting);
    if (stays) continue;
    std::int64_t out = run_.rank == 0 && queue_.withdraw(waiting.uuid) ? 1 : 0;
    comm.bcast(mutable_bytes_of(out), 0);
    if (out == 0) continue;
    if (run_.rank != 0) queue_.remove(waiting.uuid);
    if (CachedDataset* here = cached_.find(waiting.uuid)) here->is_in_flight = false;
    const Status trouble = agree(comm, queue_.news().trouble);
    const std::string why = fmt::format(
        "{} is due, and the copy of an older dataset is still under way: {}",
        is_only_checkpoint(by) ? "a newer checkpoint" : fmt::format("output {}", by.name),
        why_slow(comm, trouble, false));
    run_.events.happened("ASYNC_FLUSH_STOP", waiting, {}, why);
    run_.shared_log.info("dataset {} ({}) is not copied to {}: {}", waiting.number, waiting.name,
                         run_.settings.prefix, why);
  }
}

// --- at the end of the time ---

namespace {

bool has_name_of(const RankRecord& one, const RankRecord& other) {
  std::set<std::string_view> names;
  for (const FileEntry& file : one.files) names.insert(file.name);
  return std::any_of(other.files.begin(), other.files.end(),
                     [&](const FileEntry& file) { return names.contains(file.name); });
}

}  // namespace

/// By what the slowest rank has copied of the older one since its copy began; if a rank has copied
/// nothing, that is not known, and the order stays. What was copied of a part that is not whole is
/// copied again, so this pays only where the older one would take the time of the newer.
bool AsyncFlushing::is_newer_better(Communicator& comm) const {
  const auto flights = queue_.flights();
  const Flight& older = *flights[0];
  const Flight& newer = *flights[1];
  const std::int64_t now_us = run_.clock.steady_us();
  const double rate = older.bytes_per_s(now_us);
  const auto us_for = [&](std::uint64_t bytes) {
    return rate > 0 ? static_cast<std::int64_t>(1e6 * static_cast<double>(bytes) / rate) : 0;
  };
  const bool is_fixed = rate <= 0 || !is_only_checkpoint(older.dataset) ||
                        !is_only_checkpoint(newer.dataset) ||
                        has_name_of(older.part->record(), newer.part->record());
  std::array<std::int64_t, 4> worst = {is_fixed ? 1 : 0, now_us - last_us_,
                                       us_for(older.part_bytes() - older.copied_bytes()),
                                       us_for(newer.part_bytes())};
  comm.allreduce(worst, Reduce::max);
  const auto [any_fixed, past_end_us, older_us, newer_us] = worst;
  const std::int64_t left_us = -past_end_us;
  constexpr std::int64_t slack = 8;  // a part of the time is left for what is no copy of data
  return any_fixed == 0 && newer_us + newer_us / slack <= left_us && older_us + newer_us > left_us;
}

void AsyncFlushing::put_newer_first(Communicator& comm) {
  if (queue_.size() != 2 || !is_newer_better(comm)) return;
  if (!stop_all_ranks(comm, longest_stop_us)) return queue_.go_on();
  const auto flights = queue_.abandon();
  for (auto flight = flights.rbegin(); flight != flights.rend(); ++flight) queue_.add(*flight);
  run_.shared_log.info(
      "the time is too short for two copies to {}: dataset {} ({}) is copied before dataset {} "
      "({})",
      run_.settings.prefix, flights[1]->dataset.number, flights[1]->dataset.name,
      flights[0]->dataset.number, flights[0]->dataset.name);
}

// --- what becomes of them ---

Status AsyncFlushing::take_news(Communicator& comm) {
  while (!queue_.empty()) {
    const FlushQueue::News news = queue_.news();
    using Fate = FlushQueue::Fate;
    std::array<std::int64_t, 4> any = {news.fate != Fate::over, news.fate == Fate::damaged,
                                       news.fate == Fate::refused, !news.trouble};
    comm.allreduce(any, Reduce::max);
    const auto [is_on_its_way, is_damaged, is_refused, is_troubled] = any;
    if (is_on_its_way == 0) {
      land_first();
      continue;
    }
    if (is_troubled == 0) return {};
    Status trouble = agree(comm, news.trouble);
    if (is_refused != 0) {
      if (give_up(comm, trouble.error(), queue_.size()) == GivenUp::yes)
        run_.shared_log.warning("the copies that were under way to {} are given up for now: {}",
                                run_.settings.prefix, trouble.error().text);
      return trouble;
    }
    return is_damaged != 0 ? heal_first(comm) : trouble;
  }
  return {};
}

void AsyncFlushing::land_first() {
  const DatasetInfo dataset = first();
  queue_.remove_first();
  hangs_ = false;
  HighestNumbers& highest = prefix_.owner().highest();
  highest.time_us = std::max(highest.time_us, dataset.uuid.time_us);
  CachedDataset* here = cached_.find(dataset.uuid);
  if (here == nullptr) return;
  here->is_in_flight = false;
  here->note_flushed();
}

/// The ranks that were not damaged go on meanwhile. What could not be repaired is not read again,
/// where an earlier call had no time to give its copy up.
Status AsyncFlushing::heal_first(Communicator& comm) {
  CachedDataset* here = cached_.find(first().uuid);
  Status healed = fail(Code::lost, "it is not in the cache any more");
  if (here != nullptr)
    healed = here->usable() ? heal_due(comm, run_, *here)
                            : as_not_copied(fail(Code::lost, "{}", here->reason), *here);
  if (healed) {
    queue_.resume();
    return healed;
  }
  healed.error().is_reported = true;
  const DatasetInfo dataset = first();
  Error why = healed.error();
  if (give_up(comm, why, 1) == GivenUp::yes)
    run_.shared_log.warning("the copy of dataset {} ({}) to {} is given up: {}", dataset.number,
                            dataset.name, run_.settings.prefix, healed.error().text);
  return healed;
}

std::vector<LeftCopy> AsyncFlushing::leave(Communicator& comm) {
  std::vector<LeftCopy> left;
  if (queue_.empty()) return left;
  const Pace::Lifted lifted(run_.pace);
  const std::int64_t since_us = run_.clock.steady_us();
  const auto before = queue_.seen();  // the next step of one that fails may forget why
  const bool is_at_rest = stop_all_ranks(comm, longest_stop_us) && finish_without_copying(comm);
  log_wait(first(), since_us);
  const auto after = queue_.seen();
  for (std::size_t i = 0; i < after.size(); ++i) {
    const FlushQueue::Seen& seen = after[i];
    std::array<std::int64_t, 2> found = {!seen.is_planned, seen.is_published};
    comm.allreduce(found, Reduce::max);
    const auto [is_unplanned, is_there] = found;
    Status trouble = agree(comm, before[i].trouble);
    CachedDataset* here = cached_.find(seen.dataset.uuid);
    if (here != nullptr) here->is_in_flight = false;
    if (is_there == 0) {
      left.push_back({seen.dataset, is_unplanned == 0, std::move(trouble)});
      run_.events.happened("ASYNC_FLUSH_STOP", seen.dataset, {}, "the run ends");
      continue;
    }
    if (here != nullptr) here->note_flushed();
    if (!seen.is_over)
      run_.events.happened("FLUSH_SUCCESS", seen.dataset, {},
                           "the next run gives some files their names");
  }
  if (is_at_rest) (void)queue_.abandon();
  return left;
}

/// By the threads, as the directory may hang. False if one does not come to rest.
bool AsyncFlushing::finish_without_copying(Communicator& comm) {
  const std::int64_t end_us = run_.clock.steady_us() + patience_with_errors_us;
  std::uint64_t steps = queue_.steps();
  queue_.go_on(false);
  while (true) {
    queue_.help();
    const bool has_moved_here = std::exchange(steps, queue_.steps()) != steps;
    std::array<std::int64_t, 3> some = {has_moved_here, !queue_.waits_for_data(),
                                        run_.clock.steady_us() > end_us};
    comm.allreduce(some, Reduce::max);
    const auto [has_moved, goes_on, is_over] = some;
    if (is_over != 0 || (has_moved == 0 && goes_on == 0))
      return stop_all_ranks(comm, longest_stop_us);
    if (has_moved != 0) queue_.go_on(false);  // one may go on after what another has done
    run_.clock.sleep_us(shortest_wait_us);
  }
}

/// True if no thread of any rank takes a step now, or will.
bool AsyncFlushing::stop_all_ranks(Communicator& comm, std::int64_t longest_us) {
  return allreduce(comm, queue_.stop(longest_us) ? 1 : 0, Reduce::min) != 0;
}

bool AsyncFlushing::stop() { return queue_.stop(longest_stop_us); }

/// The first `most` flights. Some may be there all the same: the keeper is to know. `not_now`, and
/// nothing is given up, where a thread hangs in a call of the file system, the directory does not
/// answer, or this call has no time to find that out: a later call does. `elsewhere`: nor is it as
/// long as another directory has its place, and `why` says so. The copies go on until the directory
/// has answered: one that is stopped begins once more.
AsyncFlushing::GivenUp AsyncFlushing::give_up(Communicator& comm, Error& why, std::size_t most) {
  if (!check_answer(comm, longest_look_us)) return GivenUp::not_now;
  if (const Status itself =
          agree(comm, check_prefix_identity(run_.files, run_.settings.prefix, run_.identity));
      !itself) {
    why = itself.error();
    return GivenUp::elsewhere;
  }
  const std::int64_t left_us = std::max(last_us_ - run_.clock.steady_us(), std::int64_t{0});
  if (!stop_all_ranks(comm, std::min(left_us, longest_stop_us))) {
    queue_.go_on();
    return GivenUp::not_now;
  }
  const auto flights = queue_.abandon();
  for (std::size_t i = 0; i < flights.size(); ++i)
    if (i < most) give_up_one(comm, *flights[i], why);
  for (std::size_t i = most; i < flights.size(); ++i) queue_.add(flights[i]);
  prefix_.owner().note_news();
  return GivenUp::yes;
}

/// It leaves nothing by which a later flight of the same dataset would take a part for done.
void AsyncFlushing::give_up_one(Communicator& comm, Flight& flight, const Error& why) {
  run_.events.happened("ASYNC_FLUSH_FAIL", flight.dataset, {}, why.text);
  if (CachedDataset* here = cached_.find(flight.dataset.uuid)) here->is_in_flight = false;
  const Status cleared = clear_away(comm, flight);
  if (cleared) return;
  is_off_ = true;
  run_.shared_log.warning(
      "some of what was copied of dataset {} ({}) to {} could not be removed, so the program waits "
      "for its copies from here on: {}",
      flight.dataset.number, flight.dataset.name, run_.settings.prefix, cleared.error().text);
}

/// Where a later owner has the plan, it is that one's.
Status AsyncFlushing::clear_away(Communicator& comm, Flight& flight) {
  const EpochFolder epoch(run_.files, site_->folder, site_->epoch);
  const std::string plan = site_->folder.pending(site_->epoch, flight.dataset);
  std::int64_t is_ours = 0;
  Status taken_in;
  if (flight.owner) {
    taken_in = flight.owner->take_in_if_published();
    const auto seen = run_.files.info(plan);
    is_ours = seen || seen.error().code != Code::not_found ? 1 : 0;
  }
  CAIRN_TRY(agree(comm, std::move(taken_in)));
  comm.bcast(mutable_bytes_of(is_ours), 0);
  if (is_ours == 0) return {};
  CAIRN_TRY(agree(comm, flight.owner ? epoch.withdraw(plan) : Status{}));
  CAIRN_TRY(agree(comm, unstage_rank(run_.files, site_->folder, flight.part->record())));
  return agree(comm, flight.owner ? epoch.abandon(flight.dataset) : Status{});
}

bool AsyncFlushing::has_newer_than(const Uuid& dataset) const {
  const auto queued = queue_.flights();
  return std::any_of(queued.begin(), queued.end(),
                     [&](const auto& flight) { return dataset < flight->dataset.uuid; });
}

bool AsyncFlushing::is_under_way(const Uuid& dataset) const {
  const auto queued = queue_.flights();
  return std::any_of(queued.begin(), queued.end(),
                     [&](const auto& flight) { return flight->dataset.uuid == dataset; });
}

// --- waiting ---

/// The first error; but the others are waited for all the same.
Status AsyncFlushing::wait_for_all(Communicator& comm) {
  Status all;
  while (!queue_.empty()) {
    const std::size_t before = queue_.size();
    Status over = wait_for_first(comm, patience_with_errors_us);
    if (!over && all) all = std::move(over);
    if (queue_.size() == before) break;
  }
  return all;
}

Status AsyncFlushing::wait_for_first(Communicator& comm, std::int64_t with_errors_us) {
  const DatasetInfo dataset = first();
  Watch watch = begin_watch(with_errors_us);
  const auto over = watch_first(comm, watch);
  log_wait(dataset, watch.since_us);
  if (over && !*over) return time_is_over();
  return over.map([](bool) {});
}

/// Until the first is under way no more. False if the time is over.
Result<bool> AsyncFlushing::watch_first(Communicator& comm, Watch& watch) {
  const Pace::Lifted lifted(run_.pace);
  const std::size_t before = queue_.size();
  while (true) {
    pause(watch, {});
    Status trouble = take_news(comm);
    if (queue_.size() < before) return trouble.map([] { return true; });
    const Verdict verdict = judge(comm, watch, trouble);
    if (verdict == Verdict::hangs) CAIRN_TRY(not_answering());
    if (verdict == Verdict::time_is_over) return false;
    if (verdict != Verdict::give_up) continue;
    const bool may_stay = watch.with_errors_us == 0;
    if (may_stay || give_up(comm, trouble.error(), queue_.size()) != GivenUp::not_now)
      CAIRN_TRY(trouble);
    if (watch.hung_since_us == 0) watch.hung_since_us = run_.clock.steady_us();
  }
}

Result<bool> AsyncFlushing::wait_until_published(Communicator& comm, const DatasetInfo& dataset) {
  queue_.hurry();  // else the last error would end this wait before the next try
  Watch watch = begin_watch(patience_with_errors_us);
  auto over = watch_until_published(comm, dataset.uuid, watch);
  log_wait(dataset, watch.since_us);
  return over;
}

Result<bool> AsyncFlushing::watch_until_published(Communicator& comm, const Uuid& dataset,
                                                  Watch& watch) {
  const Pace::Lifted lifted(run_.pace);
  while (true) {
    pause(watch, dataset);
    Status trouble = take_news(comm);
    if (!is_under_way(dataset)) return trouble.map([] { return true; });
    if (allreduce(comm, is_published(dataset) ? 1 : 0, Reduce::min) != 0) return true;
    const Verdict verdict = judge(comm, watch, trouble);
    if (verdict == Verdict::time_is_over) return false;
    if (verdict == Verdict::hangs) CAIRN_TRY(not_answering());
    if (verdict == Verdict::give_up) CAIRN_TRY(trouble);
  }
}

/// Of the program: what it could not do meanwhile.
void AsyncFlushing::log_wait(const DatasetInfo& dataset, std::int64_t since_us) {
  waited_us_ += unlogged_us(since_us);
  run_.events.waited("ASYNC_FLUSH_WAIT", dataset, run_.seconds_since(since_us));
}

Status AsyncFlushing::not_answering() const {
  return fail(Code::io, "{} does not answer: nothing was copied for {}", run_.settings.prefix,
              format_seconds(static_cast<double>(longest_silence_us) * 1e-6));
}

Status AsyncFlushing::time_is_over() {
  is_time_over_ = true;
  return fail(Code::busy, "there is no time left to wait for the copies to {}",
              run_.settings.prefix);
}

AsyncFlushing::Watch AsyncFlushing::begin_watch(std::int64_t with_errors_us) const {
  const std::int64_t now_us = run_.clock.steady_us();
  const std::int64_t moved_us = now_us - (hangs_ ? longest_silence_us : 0);
  return {now_us, moved_us, moved_us, shortest_wait_us, with_errors_us};
}

/// Rank 0's clock decides for all.
AsyncFlushing::Verdict AsyncFlushing::judge(Communicator& comm, Watch& watch,
                                            const Status& trouble) {
  const bool has_failed = see_progress(comm, watch);
  const std::int64_t now_us = run_.clock.steady_us();
  const std::int64_t silent_us = now_us - watch.moved_us;
  // A try that copies once more what an earlier one has copied may go well.
  const bool may_go_well =
      !has_failed && silent_us < watch.with_errors_us && watch.hung_since_us == 0;
  const bool is_further = now_us - watch.further_us < watch.with_errors_us;
  auto verdict = Verdict::go_on;
  if (!trouble && !is_further && !may_go_well) verdict = Verdict::give_up;
  // Another rank may go on trying meanwhile, and fail.
  const bool has_hung =
      watch.hung_since_us > 0 && now_us - watch.hung_since_us >= longest_silence_us;
  if (has_hung || (trouble && silent_us >= longest_silence_us)) verdict = Verdict::hangs;
  if (now_us >= last_us_) verdict = Verdict::time_is_over;
  const bool has_to_tell = waited_us_ + unlogged_us(watch.since_us) >= told_every_us;
  std::array<std::int64_t, 3> decided = {static_cast<std::int64_t>(verdict), has_to_tell,
                                         waited_us_ > 0};
  comm.bcast(mutable_bytes_of(decided), 0);
  const auto [decided_verdict, tells, has_waited_before] = decided;
  verdict = static_cast<Verdict>(decided_verdict);
  hangs_ = verdict == Verdict::hangs;
  run_.events.called();  // a run that waits is not hung
  if (verdict == Verdict::go_on && tells != 0)
    tell_of_waiting(comm, watch.since_us, trouble, has_waited_before != 0);
  return verdict;
}

/// Shorter where this process has news.
void AsyncFlushing::pause(Watch& watch, const Uuid& until_published) {
  const std::int64_t end_us = std::min(run_.clock.steady_us() + watch.pause_us, last_us_);
  while (queue_.news().fate == FlushQueue::Fate::under_way && !is_published(until_published) &&
         run_.clock.steady_us() < end_us) {
    queue_.help();
    run_.clock.sleep_us(std::min(watch.pause_us, shortest_wait_us));
  }
  watch.pause_us = std::min(watch.pause_us + watch.pause_us / 2, longest_wait_us);
}

/// On any rank. Blocks that a try copies once more show that the prefix directory answers; but a
/// wait that counted them as progress would not end as long as each try fails at its end. True if
/// a try of the first has failed since the last look.
bool AsyncFlushing::see_progress(Communicator& comm, Watch& watch) {
  const std::uint64_t moves = queue_.steps() + copied_;
  std::uint64_t progress = queue_.steps();
  for (const auto& flight : queue_.flights()) progress += flight->most_copied_bytes();
  const int failures = queue_.news().failures;
  std::array<std::int64_t, 3> any = {
      std::exchange(seen_moves_, moves) != moves,
      std::exchange(seen_progress_, progress) != progress,
      std::exchange(seen_failures_, failures) != failures && failures > 0};
  comm.allreduce(any, Reduce::max);
  const auto [has_moved, is_further, has_failed] = any;
  const std::int64_t now_us = run_.clock.steady_us();
  if (is_further != 0) {
    watch.further_us = now_us;
    watch.hung_since_us = 0;
  }
  if (has_moved != 0) {
    watch.moved_us = now_us;
    hangs_ = false;
  }
  return has_failed != 0;
}

/// How much of a wait since then is in no line of the log yet.
std::int64_t AsyncFlushing::unlogged_us(std::int64_t since_us) const {
  return run_.clock.steady_us() - std::max(since_us, told_us_);
}

/// Short waits add up: a program may wait in each call for a moment.
void AsyncFlushing::tell_of_waiting(Communicator& comm, std::int64_t since_us,
                                    const Status& trouble, bool has_waited_before) {
  const std::int64_t all_us = std::exchange(waited_us_, 0) + unlogged_us(since_us);
  told_us_ = run_.clock.steady_us();
  const DatasetInfo dataset = first();
  run_.shared_log.info(
      "waiting for {}{} for the copy of dataset {} ({}) to {}: rank 0 has copied {} of {}; {}",
      format_seconds(run_.seconds_since(since_us)),
      has_waited_before ? fmt::format(" (with earlier calls {})",
                                      format_seconds(static_cast<double>(all_us) * 1e-6))
                        : "",
      dataset.number, dataset.name, run_.settings.prefix,
      format_bytes(queue_.flights().front()->copied_bytes()),
      format_bytes(queue_.flights().front()->part_bytes()),
      why_slow(comm, trouble, !has_waited_before));
}

/// By what the first flight has done on all ranks that copy their part of it still.
std::string AsyncFlushing::why_slow(Communicator& comm, const Status& trouble,
                                    bool is_waited_for) const {
  if (!trouble) return "it is tried again after an error: " + trouble.error().text;
  const std::shared_ptr<const Flight> flight = queue_.flights().front();
  auto limit = CopyLimit::none;
  if (flight->is_copying())
    limit = limit_of({run_.clock.steady_us() - flight->copies_since_us,
                      run_.pace.rested_us() - flight->rested_before_us, flight->copied_bytes()},
                     site_->bytes_per_s_rank(site_->limits.width), is_waited_for);
  limit = static_cast<CopyLimit>(allreduce(comm, static_cast<std::int64_t>(limit), Reduce::max));
  return text_of(limit, run_.settings, site_->limits.bytes_per_s_node) + " limits the speed";
}

}  // namespace cairn
