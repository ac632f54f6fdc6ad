#include "session/flushing.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "config/remedy.hpp"
#include "recovery/restore.hpp"
#include "restart/restart_choice.hpp"

namespace cairn {
namespace {

std::string labels_of(const std::vector<DatasetInfo>& datasets) {
  std::vector<std::string> labels;
  for (const DatasetInfo& dataset : datasets)
    labels.push_back(fmt::format("dataset {} ({})", dataset.number, dataset.name));
  return fmt::format("{}", fmt::join(labels, ", "));
}

const Status& first_error(const Status& one, const Status& other) { return one ? other : one; }

/// What the user can do about it is there too.
std::string text_of_try(const Status& last, const Settings& settings) {
  if (last) return "";
  return ". The last try failed: " + with_remedy(last.error(), settings, Storage::prefix);
}

/// Where the prefix directory could not be read at Init, and is this run's now.
void settle_identity(Communicator& comm, ThisRun& run) {
  PrefixIdentity& identity = run.identity;
  const bool was_settled = identity.is_settled;
  if (was_settled && !identity.is_new) return;
  settle_prefix_identity(comm, run.files, run.clock, run.settings, run.own_log, identity);
  if (identity.is_settled && !was_settled)
    note_prefix(comm, run.files, run.locks, run.settings, identity, run.own_log);
}

/// Before a byte of the dataset is read.
bool is_refused_for_names(const Error& why) { return why.code == Code::invalid; }

/// A newer one may well be copied.
bool lies_in_dataset(const Error& why, const CachedDataset& dataset) {
  return !dataset.usable() || dataset.names_are_taken || is_damage(why.code);
}

/// What is called safe in the cache is to be that.
bool may_be_damaged(const Error& why, const CachedDataset& dataset) {
  return is_damage(why.code) || (is_refused_for_names(why) && !dataset.checked);
}

/// By a thread, which is waited for as long as by a process that has no time. An error
/// (agreed) if a rank finds that another directory has the place of the prefix directory.
Status look_at_place(Communicator& comm, ThisRun& run, BoundedWork& look) {
  const auto itself = std::make_shared<Status>();
  const bool answers =
      look.carry_out(run.background, run.clock, longest_leaving_us, [&run, itself] {
        *itself = check_prefix_identity(run.files, run.settings.prefix, run.identity);
      });
  return agree(comm, answers ? *itself : Status{});
}

}  // namespace

void Flushing::learn_from_prefix(Communicator& comm) {
  if (prefix_.owner().is_owned()) settle_identity(comm, run_);
  if (prefix_.owner().is_missing()) {
    was_missing_ = true;
    (void)trouble_.logged.is_news(missing);  // the log says so already
  }
  if (const Status known = look_up(comm); !known)
    run_.shared_log.warning("cannot copy anything to {} now: {}", run_.settings.prefix,
                            known.error().text);
  remove_deleted(comm);
  run_.last.come_after(prefix_.owner().highest().number, prefix_.owner().highest().checkpoint);
  due_.want_newest_if_overdue(comm);
}

/// Another owner may have changed what this run knew to be there.
Status Flushing::look_up(Communicator& comm) {
  const auto has_looked = prefix_.look_up(comm, cached_.all());
  if (!has_looked || *has_looked) copies_.forget_uncached();
  const bool is_known = prefix_.owner().is_owned() || prefix_.owner().trouble().empty();
  if (has_looked && is_known && !was_missing_) note_unrestored(comm);
  return has_looked.map([](bool) {});
}

/// What `cairn index delete` has deleted does not come back from the caches. It is forgotten only
/// when nothing of it is left there, so that a crash loses none.
void Flushing::remove_deleted(Communicator& comm) {
  const auto goes = [](const CachedDataset& dataset) {
    return dataset.there == PrefixState::deleted && !is_left_alone(dataset.state);
  };
  const auto& all = cached_.all();
  if (std::any_of(all.begin(), all.end(), goes)) {
    for (const CachedDataset& dataset : all)
      if (goes(dataset))
        run_.shared_log.info("dataset {} was deleted from {}, so it is removed from the cache too",
                             dataset.info.number, run_.settings.prefix);
    cached_.remove_if(comm, goes);
    cached_.wait_for_removal(comm);
  }
  prefix_.forget_deleted(cached_.all());
}

void Flushing::look_for_absent_prefix(Communicator& comm) {
  PrefixOwner& owner = prefix_.owner();
  const bool was_away = !run_.identity.is_settled || !owner.trouble().empty();
  if (!was_away || owner.is_owned() || !wait_for_answer(comm)) return;
  if (!owner.open_again(comm)) return;
  learn_from_prefix(comm);
}

/// At the end there is no other try, so an answer is waited for as long as a copy that does not
/// move.
Status Flushing::wait_for_answer(Communicator& comm) {
  if (is_in_init_ || !flushes_any_async(run_.settings)) return {};
  return async_.wait_for_answer(comm, is_last_ ? longest_silence_us : longest_look_us);
}

Status Flushing::claim(Communicator& comm) {
  CAIRN_TRY(wait_for_copies(comm));
  CAIRN_TRY(wait_for_answer(comm));
  Status claimed = prefix_.owner().claim(comm);
  if (claimed) settle_identity(comm, run_);
  Status known = look_up(comm);
  return claimed ? known : claimed;
}

// --- copying ---

/// A block that does not match its checksum any more is repaired first.
Status Flushing::flush(Communicator& comm, CachedDataset& dataset) {
  const std::vector<std::string> cached = cached_.own_paths(dataset);
  const std::string& store = run_.stores[dataset.store].settings().path;
  Status flushed = claim(comm);
  if (flushed && dataset.flushed()) return {};
  if (flushed) {
    copies_.expect(comm, dataset.info, dataset.record.files, comes_late(dataset));
    flushed = prefix_.flush(comm, dataset, store, cached, stops_us_);
    if (!flushed && may_be_damaged(flushed.error(), dataset)) {
      CAIRN_TRY(heal_for_copy(comm, run_, prefix_, dataset));
      flushed = prefix_.flush(comm, dataset, store, cached, stops_us_);
    }
  }
  if (flushed) {
    dataset.note_flushed();
    trouble_ = {};
    return {};
  }
  dataset.names_are_taken = is_refused_for_names(flushed.error());
  if (check_time(comm)) tell_not_copied(dataset, flushed.error());
  return flushed;
}

void Flushing::tell_not_copied(CachedDataset& dataset, Error& why) {
  // It is tried again, or named when the run ends.
  if (async_.is_time_over()) return;
  trouble_.last = tl::unexpected(why);
  if (is_last_ && !async_.is_idle()) return;
  if (is_news(why))
    run_.shared_log.warning(
        "{} stays in the cache, because it cannot be copied to {} now: {}{}", dataset.label(),
        run_.settings.prefix, with_remedy(why, run_.settings, Storage::prefix),
        is_last_ ? ""
        : dataset.names_are_taken
            ? ". Cairn does not try again before the program ends"
            : ". Cairn tries again with each dataset, and logs the same failure only once");
  why.is_reported = true;
}

// --- copies that go on without the program ---

/// What was given up is found missing at the end, and tried once more.
Status Flushing::wait_for_copies(Communicator& comm) {
  if (async_.is_idle()) return {};
  const Status over = async_.wait_for_all(comm);
  if (over) return {};
  if (!async_.is_idle()) return over;
  begin_anew();
  return {};
}

/// The prefix directory is looked at here, and not when a copy is to begin: it may hang by then.
Status Flushing::be_ready_for_copies(Communicator& comm) {
  if (is_ready_ && prefix_.owner().is_owned()) return {};
  CAIRN_TRY(claim(comm));
  CAIRN_TRY(async_.see_epoch(comm));
  is_ready_ = true;
  return {};
}

/// Its files may not replace what was written since: the program waits while that is compared.
bool Flushing::comes_late(const CachedDataset& dataset) const {
  return dataset.info.uuid.time_us <= prefix_.owner().highest().time_us ||
         async_.has_newer_than(dataset.info.uuid);
}

/// As its descriptor says.
bool Flushing::is_async(const DatasetInfo& dataset) const {
  const Level& level = run_.levels[choose_level(run_.levels, dataset)];
  return flushes_async(run_.settings, level.settings);
}

/// The program does not wait for its copy, or no longer than the time that is left. When that is
/// over, the plan and what is copied stay; of a copy that the program makes itself nothing does.
bool Flushing::goes_on_alone(const DatasetInfo& dataset) const {
  const bool may_take_its_time = is_last_ && end_us_ < 0;
  return is_async(dataset) && !may_take_its_time && !async_.is_off();
}

/// It is there when this returns, or on its way. At the end one is waited for after the other, so
/// that one that fails takes no other with it.
Status Flushing::copy(Communicator& comm, CachedDataset& dataset) {
  CAIRN_TRY(check_time(comm));
  if (!goes_on_alone(dataset.info) || comes_late(dataset)) return flush(comm, dataset);
  Status copied = begin_copy(comm, dataset);
  if (copied && is_last_) {
    copied = async_.wait_for_all(comm);
    if (!copied && async_.is_idle()) begin_anew();
  }
  if (!copied) tell_not_copied(dataset, copied.error());
  return copied;
}

Status Flushing::take_news(Communicator& comm) {
  if (async_.is_idle()) return {};
  Status trouble = async_.take_news(comm);
  if (!trouble && async_.is_idle()) begin_anew();
  return trouble;
}

Result<bool> Flushing::copy_due(Communicator& comm, const Uuid& dataset) {
  if (CachedDataset* here = cached_.find(dataset)) here->names_are_taken = false;
  const Status copied = flush_due(comm, dataset);
  if (async_.is_time_over()) return false;
  if (!copied) return not_copied(dataset, copied);
  return true;
}

Result<bool> Flushing::wait_until_published(Communicator& comm, const DatasetInfo& dataset) {
  auto over = async_.wait_until_published(comm, dataset);
  if (over) return over;
  if (async_.is_idle()) begin_anew();
  return not_copied(dataset.uuid, over.map([](bool) {}));
}

/// A reason that the log has is not logged once more.
tl::unexpected<Error> Flushing::not_copied(const Uuid& dataset, const Status& why) {
  const CachedDataset* here = cached_.find(dataset);
  if (!why && (here == nullptr || !here->usable())) return tl::unexpected(why.error());
  Error reason = why ? Error{Code::io, "the copy was given up"} : why.error();
  const bool is_reported = reason.is_reported || !is_news(reason);
  auto error = fail(Code::not_copied, "{} is safe in the cache, but not yet in {}: {}",
                    here != nullptr ? here->label() : "a dataset", run_.settings.prefix,
                    with_remedy(reason, run_.settings, Storage::prefix));
  error.value().is_reported = is_reported;
  return error;
}

/// What could not be copied is tried again, and the program is told once.
Status Flushing::take_news_of_copies(Communicator& comm) {
  if (async_.is_idle()) return {};
  DatasetInfo first = async_.first();
  const Status trouble = take_news(comm);
  if (trouble) {
    // While the directory hangs, there is no trouble, and no end either.
    if (async_.is_idle() || !(async_.first() == first)) trouble_ = {};
    return {};
  }
  if (trouble.error().is_reported) return {};  // that is among the run's losses
  if (!async_.is_idle()) first = async_.first();
  if (!is_news(trouble.error())) return {};
  Status not_copied =
      fail(Code::not_copied, "dataset {} ({}) is safe in the cache, but not yet in {}: {}",
           first.number, first.name, run_.settings.prefix,
           with_remedy(trouble.error(), run_.settings, Storage::prefix));
  run_.shared_log.warning(
      "{}. Cairn goes on trying while the program runs, and logs the same "
      "failure only once",
      not_copied.error().text);
  not_copied.error().is_reported = true;
  return not_copied;
}

/// What was given up is wanted still.
void Flushing::begin_anew() {
  is_ready_ = false;
  due_.want_newest();
}

Status Flushing::begin_copy(Communicator& comm, CachedDataset& dataset) {
  CAIRN_TRY(be_ready_for_copies(comm));
  if (dataset.flushed()) return {};
  const Uuid uuid = dataset.info.uuid;
  CAIRN_TRY(async_.start(comm, dataset));
  const CachedDataset& begun = *cached_.find(uuid);
  copies_.expect(comm, begun.info, begun.record.files, false);
  return {};
}

/// Nothing can be written to the prefix directory, and the log does not have that reason yet. On
/// all ranks alike.
bool Flushing::is_news(const Error& trouble) {
  trouble_.last = tl::unexpected(trouble);
  return trouble_.logged.is_news(prefix_.owner().is_missing() ? missing : cause_of(trouble));
}

/// Unless one before it could not begin. If a newer one overtook that, it would come late, and the
/// program would have to wait for it.
Status Flushing::copy_in_turn(Communicator& comm, CachedDataset& dataset, Status& before) {
  // Each try would wait for what is under way, and use the prefix directory.
  if (dataset.names_are_taken && !is_last_)
    return fail(Code::not_copied, "{} waits for the end of the run", dataset.label());
  Status flushed = before ? copy(comm, dataset) : before;
  const bool holds_others_back = !flushed && !is_last_ && goes_on_alone(dataset.info) &&
                                 !lies_in_dataset(flushed.error(), dataset);
  if (holds_others_back) before = flushed;
  return flushed;
}

/// All outputs that are not there yet (with `all`, all datasets), the oldest first, then the newest
/// checkpoint where one is due. The error of the dataset that was written last, if that one failed;
/// others are only told.
Status Flushing::flush_due(Communicator& comm, const Uuid& written, bool all) {
  Status last;
  if (!run_.settings.flush) return last;
  Status before;  // why one that goes before the others could not begin
  const auto flush_one = [&](CachedDataset& dataset) {
    if (dataset.is_in_flight) return true;
    Status flushed = copy_in_turn(comm, dataset, before);
    if (dataset.info.uuid == written) last = flushed;
    return flushed.has_value();
  };
  for (auto dataset = cached_.all().rbegin(); dataset != cached_.all().rend(); ++dataset)
    if (dataset->usable() && !dataset->flushed() && (all || dataset->info.is_output()))
      flush_one(*dataset);
  // If one is found lost, the next one takes its place.
  while (due_.wants_newest()) {
    CachedDataset* newest = cached_.newest_checkpoint();
    if (newest == nullptr) break;
    const Uuid uuid = newest->info.uuid;
    const bool was_tried = all || newest->info.is_output();
    const auto is_on_its_way = [&] {
      return was_tried ? newest->is_in_flight : flush_one(*newest);
    };
    if (newest->flushed() || is_on_its_way()) due_.newest_is_done();
    const CachedDataset* tried = cached_.find(uuid);
    if (tried != nullptr && tried->usable()) break;
  }
  return last;
}

Status Flushing::flush_others(Communicator& comm, CachedDataset& dataset) {
  CAIRN_TRY(claim(comm));
  if (dataset.flushed()) return {};
  copies_.expect(comm, dataset.info, {}, comes_late(dataset));
  CAIRN_TRY(prefix_.flush_parts(comm, dataset.info, run_.stores[dataset.store].settings().path,
                                cached_.recorded_parts(dataset), cached_.read_own_records(),
                                stops_us_));
  dataset.note_flushed();
  run_.shared_log.info("dataset {}, written by {} ranks, is now in {}", dataset.info.number,
                       dataset.info.ranks, run_.settings.prefix);
  return {};
}

/// Outputs must be there, as those of this number of ranks; SCR_FLUSH_ON_RESTART=1 brings all
/// there, so that a program may read them itself, whatever its number of ranks.
void Flushing::flush_datasets_of_others(Communicator& comm) {
  const bool all = run_.settings.flush_on_restart;
  if (!run_.settings.flush || (!is_elastic(run_.settings) && !all)) return;
  for (auto dataset = cached_.all().rbegin(); dataset != cached_.all().rend(); ++dataset) {
    const bool due = all || dataset->info.is_output();
    if (dataset->state != CacheState::other_ranks || !due || dataset->flushed()) continue;
    Status flushed = check_time(comm);
    if (flushed) flushed = flush_others(comm, *dataset);
    if (!flushed)
      run_.shared_log.warning(
          "dataset {}, written by {} ranks, stays in the cache, because it cannot be copied to {}: "
          "{}",
          dataset->info.number, dataset->info.ranks, run_.settings.prefix, flushed.error().text);
  }
}

// --- when ---

/// What Init has found in the caches, and could not restore: as soon as it is known what the prefix
/// directory has. What a node may have that is away is not lost.
void Flushing::note_unrestored(Communicator& comm) {
  for (CachedDataset& dataset : cached_.all()) {
    const bool is_known = dataset.there != PrefixState::unreadable;
    if (!is_known || !std::exchange(dataset.may_be_there, false)) continue;
    const bool is_due = run_.settings.flush && dataset.info.is_output() && !dataset.flushed();
    if (is_due && !dataset.usable() && dataset.repair != CachedDataset::Repair::unknown)
      note_unless_superseded(comm, run_, prefix_, dataset);
  }
}

void Flushing::flush_at_init(Communicator& comm) {
  // Where that cannot be had now it is told when something is to be copied.
  if (run_.settings.flush && flushes_any_async(run_.settings)) (void)be_ready_for_copies(comm);
  (void)flush_due(comm, {}, run_.settings.flush_on_restart);  // each failure has been told
  flush_datasets_of_others(comm);
  is_in_init_ = false;
}

bool Flushing::copies_at_once(const DatasetInfo& dataset) const {
  const bool is_due = dataset.is_output() || due_.wants_newest() || due_.has_its_turn(dataset);
  return run_.settings.flush && !is_async(dataset) && is_due;
}

/// Of what is due. On all ranks alike.
bool Flushing::makes_copies_itself() {
  const auto& all = cached_.all();
  return std::any_of(all.begin(), all.end(), [this](const CachedDataset& dataset) {
    return due_.has(dataset) && !dataset.is_in_flight && !dataset.names_are_taken &&
           (!goes_on_alone(dataset.info) || comes_late(dataset));
  });
}

Flushing::Flushed Flushing::flush_after(Communicator& comm, const CachedDataset& written,
                                        bool may_wait) {
  const AsyncFlushing::Limited limited(
      async_, may_wait ? std::numeric_limits<std::int64_t>::max() : run_.clock.steady_us());
  const bool has_turn = due_.has_its_turn(written.info);
  if (has_turn) due_.want_newest();
  if (has_turn || written.info.is_output()) async_.note_due(written.info);
  const Uuid uuid = written.info.uuid;
  const std::size_t store = written.store;
  Status earlier = take_news_of_copies(comm);
  if (!may_wait && makes_copies_itself()) return {std::move(earlier), true};
  const Status flushed = flush_due(comm, uuid);
  copies_.take_in();
  if (!may_wait && !flushed && async_.is_time_over()) return {std::move(earlier), true};
  cached_.evict(comm, store, static_cast<std::size_t>(run_.stores[store].settings().count));
  const CachedDataset* left = cached_.find(uuid);
  const bool is_here = left != nullptr && left->usable();
  if (flushed || !is_here) return {std::move(earlier)};
  return {joined(not_copied(uuid, flushed), earlier)};
}

Status Flushing::flush_at_end(Communicator& comm, std::int64_t longest_us) {
  comm.bcast(mutable_bytes_of(longest_us), 0);
  due_.want_newest();
  if (longest_us >= 0) {
    end_us_ = run_.clock.steady_us() + longest_us;
    async_.wait_no_longer_than(longest_us);
  }
  const bool leaves = run_.settings.flush_at_end == FlushAtEnd::leave;
  if (leaves || longest_us >= 0) begin_due(comm);
  if (leaves) return leave_copies(comm);
  if (longest_us >= 0) async_.put_newer_first(comm);
  const Status over = wait_for_copies(comm);
  if (!over && !async_.is_time_over()) trouble_.last = over;
  if (async_.is_time_over() || !async_.is_idle()) return leave_copies(comm);
  const auto news = has_news(comm);
  if (!news) return leave_copies(comm);
  is_last_ = true;
  if (end_us_ >= 0 && flushes_any_async(run_.settings)) stops_us_ = end_us_;
  if (*news) look_for_what_has_gone(comm);
  std::vector<Uuid> due = due_.all();
  (void)flush_due(comm, {});  // each has been told; what is left of them is found below
  for (const Uuid& next : due_.all()) due.push_back(next);  // in the place of what was lost
  if (async_.is_time_over() || !async_.is_idle()) return leave_copies(comm);
  flush_datasets_of_others(comm);
  if (!check_time(comm)) CAIRN_TRY(leave_copies(comm));
  return check_copied(due);
}

/// Where copies go on without the program, a thread looks, as the prefix directory may hang: then
/// nothing is known. Without news, and if all is copied, the program's thread need not look there.
std::optional<bool> Flushing::has_news(Communicator& comm) {
  const bool is_async = flushes_any_async(run_.settings);
  if (!is_async && !due_.any_belongs_there()) return false;
  return prefix_.owner().has_news(comm, [&](std::function<void()> look) {
    if (!is_async) {
      look();
      return true;
    }
    const std::int64_t from_us = run_.clock.steady_us();
    const std::int64_t left_us = end_us_ < 0 ? longest_closing_us : end_us_ - from_us;
    const std::int64_t longest_us =
        std::clamp(left_us, longest_closing_in_hurry_us, longest_closing_us);
    const bool answers =
        last_look_.carry_out(run_.background, run_.clock, longest_us, std::move(look));
    run_.events.waited("ASYNC_FLUSH_WAIT", {}, run_.seconds_since(from_us), "the last look");
    return answers;
  });
}

/// As copies that can be left, the oldest first. What fails is tried once more, or named as left.
void Flushing::begin_due(Communicator& comm) {
  const bool waits = run_.settings.flush_at_end == FlushAtEnd::wait;
  const std::vector<Uuid> due = due_.all();
  for (auto uuid = due.rbegin(); uuid != due.rend(); ++uuid) {
    CachedDataset* dataset = cached_.find(*uuid);
    const bool may_begin = !waits || is_async(dataset->info);
    const bool can_begin = dataset->usable() && !dataset->is_in_flight && !async_.is_off() &&
                           (waits || async_.has_room()) && !comes_late(*dataset);
    if (!may_begin || !can_begin) continue;
    Status begun = begin_copy(comm, *dataset);
    if (!async_.is_time_over()) trouble_.last = std::move(begun);
  }
}

/// Names what is left, and what carries it on.
Status Flushing::leave_copies(Communicator& comm) {
  std::vector<DatasetInfo> left;
  bool are_planned = true;
  // What a wait has returned says what the user can do.
  const Status known = async_.is_time_over() ? Status{} : trouble_.last;
  Status why;
  for (const LeftCopy& copy : async_.leave(comm)) {
    const CachedDataset* here = cached_.find(copy.dataset.uuid);
    if (here == nullptr || !here->usable()) continue;
    left.push_back(copy.dataset);
    are_planned = are_planned && copy.is_planned;
    if (!copy.trouble) why = first_error(why, first_error(known, copy.trouble));
  }
  for (const Uuid& uuid : due_.all()) {
    const DatasetInfo& due = cached_.find(uuid)->info;
    if (std::find(left.begin(), left.end(), due) != left.end()) continue;
    left.push_back(due);
    are_planned = false;
    why = first_error(why, trouble_.last);
  }
  if (left.empty()) return {};
  // There was no time to find out whether another directory has its place.
  if (!why && async_.is_time_over()) why = first_error(look_at_place(comm, run_, last_look_), why);
  auto unfinished = fail(
      Code::not_copied,
      "not finished: the {} of {} to {}. The caches have all of it; cairn run finishes it when the "
      "program has ended. Without cairn run, run \"cairn {}\" before the allocation ends{}",
      left.size() == 1 ? "copy" : "copies", labels_of(left), run_.settings.prefix,
      are_planned ? "drain" : "scavenge", text_of_try(why, run_.settings));
  if (hangs()) {
    run_.shared_log.warning("{} does not answer. {}", run_.settings.prefix,
                            unfinished.value().text);
    unfinished.value().is_reported = true;
  }
  if (run_.settings.flush_at_end == FlushAtEnd::wait) return unfinished;
  run_.shared_log.info("CAIRN_FLUSH_AT_END=leave: {}", unfinished.value().text);
  return {};
}

/// By rank 0's clock.
Status Flushing::check_time(Communicator& comm) const {
  if (!is_last_ || end_us_ < 0) return {};
  std::int64_t is_over = run_.clock.steady_us() >= end_us_ ? 1 : 0;
  comm.bcast(mutable_bytes_of(is_over), 0);
  if (is_over == 0) return {};
  return fail(Code::busy, "there is no time left to copy it to {}", run_.settings.prefix);
}

/// From the prefix directory, of what this run has copied there: it is copied again.
void Flushing::look_for_what_has_gone(Communicator& comm) {
  if (!due_.any_belongs_there()) return;
  if (const Status claimed = claim(comm); !claimed)
    run_.shared_log.warning("cannot find out whether the datasets copied to {} are still there: {}",
                            run_.settings.prefix, claimed.error().text);
}

Status Flushing::check_copied(const std::vector<Uuid>& due) const {
  std::vector<DatasetInfo> left;
  for (auto dataset = cached_.all().rbegin(); dataset != cached_.all().rend(); ++dataset) {
    const bool was_due = std::find(due.begin(), due.end(), dataset->info.uuid) != due.end();
    if (was_due && !dataset->flushed() && !is_lost(dataset->state)) left.push_back(dataset->info);
  }
  if (left.empty()) return {};
  return fail(
      Code::not_copied,
      "{} {} not in {}, but safe in the caches of this job's nodes. To copy {}, {}run "
      "\"cairn scavenge\" before the allocation ends{}",
      labels_of(left), left.size() == 1 ? "is" : "are", run_.settings.prefix,
      left.size() == 1 ? "it" : "them",
      prefix_.owner().is_missing()
          ? fmt::format("create that directory, set SCR_JOB_ID={}, and ", run_.settings.job_id)
          : "",
      text_of_try(trouble_.last, run_.settings));
}

}  // namespace cairn
