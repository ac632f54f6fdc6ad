// The calls and steps of a Session that concern the prefix directory.

#include <algorithm>

#include "cache/catalog.hpp"
#include "config/remedy.hpp"
#include "prefix/fetch_order.hpp"
#include "recovery/commit.hpp"
#include "recovery/restart_choice.hpp"
#include "recovery/restore.hpp"
#include "session/same_call.hpp"
#include "session/session.hpp"

namespace cairn {

// --- what it has ---

/// Where the directory could not be read at Init, and is this run's now.
void Session::settle_identity() {
  if (identity_.is_settled || !prefix_.is_owned()) return;
  settle_prefix_identity(comm_, files_, clock_, settings_, log_, identity_);
  if (identity_.is_settled) note_prefix(files_, locks_, identity_.note(settings_.prefix), log_);
}

void Session::learn_from_prefix() {
  if (const Status known = prefix_.mark_flushed(datasets_); !known)
    warn("cannot copy anything to {} now: {}", settings_.prefix, known.error().text);
  remove_deleted();
  last_number_ = std::max(last_number_, prefix_.last_number());
  last_checkpoint_ = std::max(last_checkpoint_, prefix_.last_checkpoint());
  flush_wanted_ = flush_wanted_ || is_overdue();
}

/// An earlier run has made a checkpoint that was to be copied, or one after it, and the newest in
/// the prefix directory is older. Where the run has gone back since, they do not count on from that
/// one, and nobody knows.
bool Session::is_overdue() {
  const CachedDataset* newest = newest_checkpoint();
  if (settings_.flush_interval == 0 || newest == nullptr || newest->flushed) return false;
  if (!prefix_.trouble().empty()) return false;  // nobody knows either
  const auto copied = prefix_.newest_sound();
  const auto interval = static_cast<std::uint64_t>(settings_.flush_interval);
  const std::uint64_t made = newest->info.checkpoint;
  if (!copied) return made >= interval;
  const bool went_back = made <= copied->info.checkpoint;
  return copied->info.uuid < newest->info.uuid &&
         (went_back || made / interval > copied->info.checkpoint / interval);
}

/// What `cairn index delete` has deleted does not come back from the caches. It is forgotten only
/// when nothing of it is left there, so that a crash loses none.
void Session::remove_deleted() {
  const auto goes = [](const CachedDataset& dataset) {
    return dataset.deleted && dataset.state != CachedDataset::State::left_alone;
  };
  for (const CachedDataset& dataset : datasets_) {
    if (!goes(dataset)) continue;
    tell("dataset {} was deleted from {}, so it is removed from the cache too", dataset.info.number,
         settings_.prefix);
    remove_everywhere(dataset);
  }
  if (std::erase_if(datasets_, goes) > 0) {
    background_.wait();
    comm_.barrier();
  }
  prefix_.forget_deleted(datasets_);
}

/// What was refused for a reason that may pass is asked again; and where the directory was away at
/// Init, it may be there now.
void Session::look_for_prefix_again() {
  if (restart_done_) return;
  if (std::exchange(refused_for_now_, false)) ask_again();
  if (!prefix_.open_again()) return;
  settle_identity();
  learn_from_prefix();
  ask_again();
}

/// Where it was away at Init: what comes next is to be newer than all that is there. A restart that
/// was refused stays refused until it is asked for again.
void Session::look_for_absent_prefix() {
  const bool was_away = !identity_.is_settled || !prefix_.trouble().empty();
  if (!was_away || prefix_.is_owned() || !prefix_.open_again()) return;
  settle_identity();
  learn_from_prefix();
  fetch_done_ = false;
}

void Session::ask_again() {
  prefix_.forget_tried();
  fetch_done_ = false;
  fetch_refused_ = {};
}

/// What it has may only be known from now on.
Status Session::claim_prefix() {
  Status claimed = prefix_.claim();
  if (claimed) settle_identity();
  Status known = prefix_.mark_flushed(datasets_);
  return claimed ? known : claimed;
}

// --- written in place ---

Status Session::publish_current() {
  const std::int64_t from_us = clock_.steady_us();
  auto files = look_at_files();
  CAIRN_TRY(agree(comm_, files ? Status{} : Status(tl::unexpected(files.error()))));
  RankRecord record = record_of_current(*std::move(files));
  std::string open_elsewhere;
  CAIRN_TRY(prefix_.publish(record, current_.label(), routing_.takes_names(), open_elsewhere));
  warn_open_elsewhere(open_elsewhere);
  current_.flushed = true;
  // Which older ones are there the prefix directory knows; but a restart may still be to come.
  std::erase_if(datasets_, [this](const CachedDataset& dataset) {
    return dataset.in_prefix() && (current_.info.is_checkpoint() || !dataset.info.is_checkpoint());
  });
  take_in_current(std::move(record), from_us);
  return {};
}

// --- flush ---

/// What this rank has of datasets that an earlier run may have begun to flush: of those that cannot
/// be restored too, where others have done the parts that are lost.
std::vector<CachedPart> Session::cached_parts() const {
  std::vector<CachedPart> parts;
  for (const CachedDataset& dataset : datasets_) {
    if (dataset.usable()) {
      const RankFolder own = stores_[dataset.store].rank_folder(dataset.info, comm_.rank());
      parts.push_back({dataset.info.uuid, comm_.rank(), own});
      continue;
    }
    for (const RankFolder& folder : dataset.parts)
      if (const auto owner = owner_of(folder)) parts.push_back({dataset.info.uuid, *owner, folder});
  }
  return parts;
}

/// A block that does not match its checksum any more is repaired first.
Status Session::flush_dataset(CachedDataset& dataset) {
  const RankFolder folder = stores_[dataset.store].rank_folder(dataset.info, comm_.rank());
  std::vector<std::string> cached;
  for (const FileEntry& file : dataset.record.files) cached.push_back(folder.file(file.name));
  const std::string& store = stores_[dataset.store].settings().path;
  Status flushed = claim_prefix();
  if (flushed && dataset.flushed) return {};
  if (flushed) {
    flushed = prefix_.flush(dataset, store, cached);
    if (!flushed && is_damage(flushed.error().code)) {
      CAIRN_TRY(check_and_heal(comm_, files_, stores_, settings_, dataset, log_));
      flushed = prefix_.flush(dataset, store, cached);
    }
  }
  if (flushed) {
    dataset.flushed = true;
    prefix_trouble_ = {};
    return {};
  }
  if (is_news(flushed.error()))
    warn("{} stays in the cache, because it cannot be copied to {} now: {}{}", dataset.label(),
         settings_.prefix, with_remedy(flushed.error(), settings_, Storage::prefix),
         phase_ == Phase::ended
             ? ""
             : ". Cairn tries again with each dataset, and logs the same failure only once");
  flushed.error().is_reported = true;
  return flushed;
}

/// Nothing can be written to the prefix directory, and the log does not have that reason yet. On
/// all ranks alike.
bool Session::is_news(const Error& trouble) {
  return prefix_trouble_.is_news(prefix_.is_missing() ? "it does not exist" : cause_of(trouble));
}

/// All outputs that are not there yet (with `all`, all datasets), the oldest first, then the newest
/// checkpoint where one is due. The error of the dataset that was written last, if that one failed;
/// others are only told.
Status Session::flush_due(bool all) {
  Status last;
  if (!settings_.flush) return last;
  const auto flush_one = [&](CachedDataset& dataset) {
    Status flushed = flush_dataset(dataset);
    if (dataset.info.uuid == current_.info.uuid) last = flushed;
    return flushed.has_value();
  };
  for (auto dataset = datasets_.rbegin(); dataset != datasets_.rend(); ++dataset)
    if (dataset->usable() && !dataset->flushed && (all || dataset->info.is_output()))
      flush_one(*dataset);
  CachedDataset* newest = newest_checkpoint();
  if (!flush_wanted_ || newest == nullptr) return last;
  flush_wanted_ = !newest->flushed && !flush_one(*newest);
  return last;
}

CachedDataset* Session::newest_checkpoint() {
  const auto newest = std::find_if(datasets_.begin(), datasets_.end(),
                                   [](const auto& dataset) { return dataset.restorable(); });
  return newest == datasets_.end() ? nullptr : &*newest;
}

// --- fetch ---

/// Takes a checkpoint of the prefix directory, where the cache has none to restart from that is as
/// new.
Status Session::fetch_checkpoint() {
  if (!fetch_refused_) return fetch_refused_;
  if (restart_done_ || fetch_done_) return {};
  fetch_done_ = true;
  const Uuid newest_cached = newest_restorable();
  if (asked_for_ == newest_cached) return {};
  const CachedDataset* stays = left_out();
  std::string trouble = settings_.fetch ? prefix_.trouble() : "";
  // One that these ranks have written is read in the prefix directory, if it is there too.
  const bool stays_for_good = stays != nullptr && !written_by_as_many(stays->info);
  const std::string why_it_stays = stays != nullptr ? stays->reason : "";
  if (stays_for_good) trouble = why_it_stays;
  bool may_pass = !trouble.empty() && !stays_for_good;
  if (const Status copied = flush_for_restart(); !copied) {
    trouble = copied.error().text;
    may_pass = !is_damage(copied.error().code);
  }
  if (const std::string unread = prefix_.next_unread(newest_cached);
      trouble.empty() && !unread.empty()) {
    if (settings_.on_fetch_fail == OnFetchFail::stop) return refuse_for_now(unread);
    trouble = unread;
    may_pass = true;
  }
  bool is_of_scr = look_for_trouble_of_scr(newest_cached, trouble, may_pass);
  if (is_of_scr && settings_.on_fetch_fail == OnFetchFail::stop)
    return may_pass ? refuse_for_now(trouble) : stop_without_scr(trouble);
  while (trouble.empty() || settings_.on_fetch_fail == OnFetchFail::older) {
    const auto next = prefix_.next_candidate(newest_cached);
    if (!next) return refuse_to_start(tl::unexpected(next.error()));
    const auto& candidate = *next;
    if (!candidate) break;
    bool damaged = false;
    events_.happened("FETCH_START", candidate->info);
    const std::int64_t from_us = clock_.steady_us();
    const Status taken = take_in(*candidate, damaged);
    log_fetch(*candidate, taken, seconds_since(from_us));
    if (taken) return {};
    trouble = taken.error().text;
    may_pass = may_pass || !damaged;
    if (damaged) prefix_.note_failed(candidate->info.uuid, trouble);
    warn("{} in {} cannot be used: {}", candidate->label(), settings_.prefix, trouble);
    if (settings_.on_fetch_fail == OnFetchFail::stop)
      return damaged ? refuse_to_start(stop_at(*candidate, taken.error()))
                     : refuse_for_now(trouble);
  }
  if (restart_candidate() != nullptr) return {};
  is_of_scr = look_for_trouble_of_scr(newest_cached, trouble, may_pass) || is_of_scr;
  if (trouble.empty()) {
    if (why_it_stays.empty()) return {};
    trouble = why_it_stays;
    may_pass = true;
  }
  CAIRN_TRY(refuse_in_favour_of_cached());
  if (const std::string unread = prefix_.next_unread(newest_cached); !unread.empty()) {
    trouble = unread;
    may_pass = true;
  }
  if (may_pass && settings_.on_fetch_fail != OnFetchFail::fresh) return refuse_for_now(trouble);
  warn_from_scratch(why_nothing_was_fetched(trouble, is_of_scr));
  return {};
}

/// What SCR left and could not be imported counts as what cannot be read, where nothing else keeps
/// the run from a restart.
bool Session::look_for_trouble_of_scr(const Uuid& newest_cached, std::string& trouble,
                                      bool& may_pass) {
  const auto scr = settings_.fetch ? prefix_.not_imported(newest_cached) : std::nullopt;
  if (!trouble.empty() || !scr) return false;
  trouble = scr->text;
  may_pass = scr->may_pass;
  return true;
}

Status Session::stop_without_scr(const std::string& trouble) {
  return refuse_to_start(fail(
      Code::lost,
      "{}. The run does not start, because CAIRN_ON_FETCH_FAIL=stop. Correct the cause, or set "
      "CAIRN_ON_FETCH_FAIL=older to restart from an older checkpoint, or from scratch",
      trouble));
}

std::string Session::why_nothing_was_fetched(const std::string& trouble, bool is_of_scr) const {
  if (const CachedDataset* stays = left_out())
    return fmt::format("the caches have {}, but it cannot be used: {}", stays->label(), trouble);
  const std::size_t tried = prefix_.tried();
  if (tried == 0 && is_of_scr)
    return fmt::format("SCR left checkpoints in {}, but none can be imported: {}", settings_.prefix,
                       trouble);
  if (tried == 0)
    return fmt::format("it is unknown whether {} has a checkpoint: {}", settings_.prefix, trouble);
  return fmt::format("{} {} tried in {}, and the last one could not be used: {}{}", tried,
                     tried == 1 ? "checkpoint was" : "checkpoints were", settings_.prefix, trouble,
                     settings_.on_fetch_fail == OnFetchFail::fresh
                         ? "; no older one is tried, because CAIRN_ON_FETCH_FAIL=fresh"
                         : "");
}

/// Once in a run: the log, and `cairn run`, show that line and event where a restart was expected.
void Session::warn_from_scratch(const std::string& why) {
  if (std::exchange(from_scratch_, true)) return;
  warn("THE RUN STARTS FROM SCRATCH: {}", why);
  events_.happened("FRESH_START", why);
}

/// After the prefix directory was asked. Rank 0 knows what is passed over there.
void Session::report_what_is_passed_over() {
  const std::string passed_over = prefix_.report_passed_over(newest_restorable(), from_scratch_);
  if (restart_candidate() != nullptr) return;
  if (!passed_over.empty())
    warn_from_scratch("there is a checkpoint, but " + passed_over);
  else if (const std::string lost = what_caches_lost(); !lost.empty())
    warn_from_scratch(fmt::format("no checkpoint in the caches can be used, and {} has none: {}",
                                  settings_.prefix, lost));
}

/// Of the newest checkpoint that the caches had or have, and that this run cannot restart from.
/// Empty if there is none.
std::string Session::what_caches_lost() const {
  if (!given_up_.empty()) return given_up_;
  const auto may_be_checkpoint = [](const CachedDataset& dataset) {
    return dataset.info.is_checkpoint() || dataset.info.ranks == 0;  // no record says what it is
  };
  const auto lost = std::find_if(datasets_.begin(), datasets_.end(), may_be_checkpoint);
  if (lost == datasets_.end()) return "";
  const std::string& name = lost->info.name.empty() ? lost->name_here : lost->info.name;
  return fmt::format("dataset {}{} cannot be restored: {}", lost->info.number,
                     name.empty() ? "" : fmt::format(" ({})", name),
                     lost->quarantined ? "it is in quarantine" : lost->reason);
}

void Session::log_fetch(const DatasetRecord& dataset, const Status& taken, double seconds) {
  events_.happened(taken ? "FETCH_SUCCESS" : "FETCH_FAIL", dataset.info, seconds,
                   taken ? "" : taken.error().text);
  const std::string& store = levels_[choose_level(levels_, dataset.info)].settings.store;
  if (taken)
    events_.moved("FETCH", settings_.prefix,
                  restart_candidate()->in_prefix() ? settings_.prefix : store, dataset.info,
                  seconds, dataset.bytes, dataset.files);
}

/// SCR_GLOBAL_RESTART: what only the caches have could not be restarted from.
Status Session::flush_for_restart() {
  CachedDataset* newest = settings_.global_restart ? newest_checkpoint() : nullptr;
  return newest == nullptr || newest->flushed ? Status{} : flush_dataset(*newest);
}

Status Session::stop_at(const DatasetRecord& damaged, const Error& why) const {
  const Code code = why.code == Code::not_found ? Code::lost : why.code;
  return fail(code, "{}", text_of_stop(damaged, why.text, settings_));
}

/// Asked again, it says the same: the answer must not be to start from scratch.
Status Session::refuse_to_start(Status why) {
  fetch_refused_ = why;
  fetch_refused_.error().is_reported = true;
  why.error().is_reported = !refusals_.is_news(why.error().text);
  return why;
}

Status Session::refuse_for_now(const std::string& trouble) {
  refused_for_now_ = true;
  return refuse_to_start(fail(Code::io, "{}", text_of_refusal(trouble, settings_)));
}

/// Rather than copied to the cache.
bool Session::is_read_in_place(const DatasetRecord& candidate) const {
  const auto lies_in_the_way = [&](const CachedDataset& dataset) {
    return dataset.info.uuid == candidate.info.uuid &&
           (dataset.state == CachedDataset::State::left_alone || dataset.info.uuid == left_out_);
  };
  return candidate.info.in_place() || settings_.fetch_bypass ||
         levels_[choose_level(levels_, candidate.info)].settings.bypass ||
         !written_by_as_many(candidate.info) ||
         std::any_of(datasets_.begin(), datasets_.end(), lies_in_the_way);
}

Status Session::take_in_place(const DatasetRecord& candidate, bool& damaged) {
  auto checked = prefix_.check_in_place(candidate);
  damaged = !checked && is_damage(checked.error().code);
  CAIRN_ASSIGN(std::vector<RankRecord> records, std::move(checked));
  CachedDataset dataset;
  learn_names(candidate.info, records);
  if (written_by_as_many(candidate.info)) dataset.record = std::move(records.at(0));
  dataset.info = candidate.info;
  dataset.place = CachedDataset::Place::prefix;
  dataset.flushed = true;
  dataset.checked = true;
  prefix_.note_fetched(dataset.info.uuid);
  tell("{} is read directly in {}", dataset.label(), settings_.prefix);
  insert(std::move(dataset));
  return {};
}

/// While each rank has its share of the records: SCR_Route_file is a call of one rank alone. What
/// is read in the prefix directory lies where every rank can read it, so any rank may have any
/// file.
void Session::learn_names(const DatasetInfo& dataset, const std::vector<RankRecord>& records) {
  known_names_[dataset.uuid] = KnownNames(comm_, records);
}

void Session::insert(CachedDataset dataset) {
  const auto older = std::find_if(datasets_.begin(), datasets_.end(), [&](const auto& other) {
    return other.info.uuid < dataset.info.uuid;
  });
  datasets_.insert(older, std::move(dataset));
}

Status Session::take_in(const DatasetRecord& candidate, bool& damaged) {
  if (is_read_in_place(candidate)) return take_in_place(candidate, damaged);
  Status cached = take_into_cache(candidate, damaged);
  if (cached || cached.error().code != Code::no_space) return cached;
  warn("{} is not copied to the cache: {}", candidate.label(), cached.error().text);
  return take_in_place(candidate, damaged);
}

Status Session::take_into_cache(const DatasetRecord& candidate, bool& damaged) {
  CachedDataset dataset;
  dataset.info = candidate.info;
  const Level& level = levels_[choose_level(levels_, dataset.info)];
  dataset.store = level.store;
  dataset.flushed = true;
  dataset.checked = true;
  Store& store = stores_[dataset.store];
  dataset.parts = {store.rank_folder(dataset.info, comm_.rank())};
  CAIRN_ASSIGN(const RankRecord flushed, fetch_aside(candidate, store, damaged));
  if (Status taken = take_fetched(flushed, level, dataset); !taken) {
    remove_everywhere(dataset);
    return taken;
  }
  prefix_.note_fetched(dataset.info.uuid);
  tell("{} was fetched from {}", dataset.label(), settings_.prefix);
  insert(std::move(dataset));
  return {};
}

/// What the caches have left of the dataset, which another run with other nodes may find whole,
/// stays until the copy is known to be good; unless there is no room for both.
Result<RankRecord> Session::fetch_aside(const DatasetRecord& candidate, Store& store,
                                        bool& damaged) {
  const RankFolder aside = store.fetch_folder(comm_.rank());
  const auto fetch = [&]() -> Result<RankRecord> {
    CAIRN_TRY(agree(comm_, make_folders(files_, aside.files(), 0700)));
    return prefix_.fetch(candidate, aside);
  };
  auto fetched = fetch();
  if (!fetched && fetched.error().code == Code::no_space && has_remains_of(candidate.info.uuid)) {
    forget_remains_of(candidate.info.uuid);
    background_.wait();
    comm_.barrier();  // the room is there on all nodes
    fetched = fetch();
  }
  damaged = !fetched && is_damage(fetched.error().code);
  if (fetched) return fetched;
  if (const Status removed = remove_all(files_, aside.path); !removed)
    log_.warning("rank {}: {}", comm_.rank(), removed.error().text);
  return fetched;
}

Status Session::take_fetched(const RankRecord& flushed, const Level& level,
                             CachedDataset& dataset) {
  Store& store = stores_[dataset.store];
  forget_remains_of(dataset.info.uuid);
  background_.wait();
  comm_.barrier();  // who is the last to remove his part of it removes the dataset's folder
  CAIRN_TRY(agree(comm_, store.take_fetched(dataset.info, comm_.rank())));
  RankRecord record = flushed;
  record.encoding = level.encoding;
  record.encoding.generation = later_generation(comm_, clock_, flushed.encoding.generation);
  // The new checksums are taken of what lies in the cache now; the old ones must hold for it too.
  CAIRN_TRY(
      protect_and_commit(comm_, files_, store, dataset.parts[0], record, settings_, &flushed));
  dataset.record = std::move(record);
  return {};
}

bool Session::has_remains_of(const Uuid& uuid) const {
  return std::any_of(datasets_.begin(), datasets_.end(),
                     [&](const CachedDataset& dataset) { return dataset.info.uuid == uuid; });
}

/// What is left in the caches of a dataset that has come from elsewhere.
void Session::forget_remains_of(const Uuid& uuid) {
  for (const CachedDataset& dataset : datasets_)
    if (dataset.info.uuid == uuid) remove_everywhere(dataset);
  std::erase_if(datasets_, [&](const CachedDataset& dataset) { return dataset.info.uuid == uuid; });
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
  if (name.empty()) {
    CAIRN_TRY(check_ranks());
    return fail(Code::bad_argument, "SCR_Current: the name is NULL or empty");
  }
  const auto there = prefix_.current(name);
  // What is there a program of any number of ranks can have read.
  if (!there) CAIRN_TRY(check_ranks());
  std::optional<DatasetInfo> named;
  if (there) named = *there;
  const auto cached =
      std::find_if(datasets_.begin(), datasets_.end(),
                   [&](const CachedDataset& dataset) { return dataset.info.name == name; });
  if (cached != datasets_.end() && (!named || named->uuid < cached->info.uuid))
    named = cached->info;
  const Status status = unless_absent(there ? Status{} : Status(tl::unexpected(there.error())));
  if (!named && !status) return status;  // nothing was gone back to: a restart is still to come
  const bool may_be_request = !std::exchange(restart_done_, true);
  fetch_refused_ = {};
  if (named) {
    events_.happened("CURRENT", *named);
    go_back_to(*named);
  }
  if (named && may_be_request) went_on_from_ = named->uuid;
  return status;
}

/// A program that names a checkpoint by SCR_Current and then asks for one wants that one.
void Session::take_current_as_request() {
  if (!went_on_from_) return;
  asked_for_ = std::exchange(went_on_from_, std::nullopt);
  restart_done_ = false;
  ask_again();
}

/// What is newer in the caches would go before it at the next restart. It need not be there itself.
void Session::go_back_to(const DatasetInfo& named) {
  if (named.is_checkpoint()) last_checkpoint_ = named.checkpoint;
  const auto superseded = [&](const CachedDataset& dataset) {
    return named.uuid < dataset.info.uuid && dataset.state != CachedDataset::State::left_alone &&
           !dataset.info.is_output();
  };
  for (const CachedDataset& dataset : datasets_)
    if (superseded(dataset)) remove_everywhere(dataset);
  std::erase_if(datasets_, superseded);
}

Status Session::drop(const std::string& name) {
  CAIRN_TRY(enter("SCR_Drop", Phase::idle, fmt::format("name \"{}\"", name)));
  // What is read where it is goes with its entry; there may be another.
  const auto goes = [&](const auto& dataset) {
    return dataset.in_prefix() && dataset.info.name == name;
  };
  if (std::erase_if(datasets_, goes) > 0) fetch_done_ = false;
  if (!fetch_refused_) ask_again();  // it may have been that one
  return unless_absent(prefix_.drop(name));
}

/// 1 for each of the datasets that has this name and may be removed, 0 for the others. Not every
/// rank has a record of one that cannot be restored.
std::vector<std::int64_t> Session::find_named(const std::string& name) {
  std::vector<std::int64_t> named;
  for (const CachedDataset& dataset : datasets_) {
    const bool it_is = dataset.info.name == name || dataset.name_here == name;
    named.push_back(it_is && dataset.state != CachedDataset::State::left_alone ? 1 : 0);
  }
  if (!named.empty()) comm_.allreduce(named, Reduce::max);
  return named;
}

Status Session::remove(const std::string& name) {
  CAIRN_TRY(enter("SCR_Delete", Phase::idle, fmt::format("name \"{}\"", name)));
  const std::vector<std::int64_t> named = find_named(name);
  for (std::size_t i = named.size(); i-- > 0;) {
    if (named[i] == 0) continue;
    if (datasets_[i].in_prefix()) fetch_done_ = false;
    remove_everywhere(datasets_[i]);
    datasets_.erase(datasets_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  background_.wait();
  comm_.barrier();  // the room is there when this returns, on every rank's node
  // It may have been the one that was refused.
  if (!fetch_refused_) ask_again();
  return unless_absent(prefix_.remove(name));
}

}  // namespace cairn
