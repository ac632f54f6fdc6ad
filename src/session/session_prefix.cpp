// The calls and steps of a Session that concern the prefix directory.

#include <algorithm>

#include "cache/catalog.hpp"
#include "config/remedy.hpp"
#include "recovery/commit.hpp"
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
  if (std::exchange(may_ask_again_, false)) ask_again();
  if (!prefix_.open_again()) return;
  settle_identity();
  learn_from_prefix();
  ask_again();
}

void Session::ask_again() {
  forget_passing(attempts_);
  prefix_.read_scr_again();
  refusal_ = {};
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

/// Carries out what is decided, until there is nothing left to do but to answer the program.
Status Session::find_restart() {
  CAIRN_TRY(refusal_);
  while (true) {
    const RestartDecision decision = decide();
    if (decision.is_refusal()) return refuse_to_start(decision);
    if (decision.step == RestartStep::start_fresh) warn_from_scratch(decision.why);
    if (decision.is_last()) return {};
    carry_out(decision);
  }
}

/// By rank 0, which knows what is in the prefix directory.
RestartDecision Session::decide() {
  RestartDecision decision;
  if (comm_.rank() == 0) {
    const RestartFacts facts = restart_facts();
    decision = decide_restart(facts, settings_, attempts_);
    const std::string ignored = why_current_is_ignored(facts, settings_, attempts_);
    if (!ignored.empty() && current_ignored_.is_news(ignored)) warn("{}", ignored);
  }
  share(comm_, decision);
  return decision;
}

/// On rank 0.
RestartFacts Session::restart_facts() {
  RestartFacts facts;
  facts.ranks = static_cast<std::uint32_t>(comm_.size());
  facts.is_over = restart_done_;
  facts.asked_for = asked_for_;
  facts.cached = datasets_;
  prefix_.tell_facts(facts);
  for (const DatasetRecord& record : facts.listing)
    if (levels_[choose_level(levels_, record.info)].settings.bypass)
      facts.bypassing.push_back(record.info.uuid);
  return facts;
}

void Session::carry_out(const RestartDecision& decision) {
  const bool is_of_prefix =
      decision.step == RestartStep::fetch || decision.step == RestartStep::read_in_place;
  const Status done = is_of_prefix ? take_from_prefix(decision) : prepare_restart(decision);
  RestartAttempt attempt{decision.step, decision.dataset, {}, {}};
  if (!done) {
    const Code code = done.error().code;
    attempt.code = code;
    attempt.trouble = {done.error().text, decision.step == RestartStep::import_first
                                              ? may_import_later(code)
                                              : !is_damage(code)};
  }
  attempts_.push_back(std::move(attempt));
}

/// What makes a dataset ready to be decided about.
Status Session::prepare_restart(const RestartDecision& decision) {
  if (decision.step == RestartStep::import_first) return prefix_.import_from_scr(decision.dataset);
  const auto dataset =
      std::find_if(datasets_.begin(), datasets_.end(),
                   [&](const CachedDataset& each) { return each.info.uuid == decision.dataset; });
  return decision.step == RestartStep::offer_copy ? offer_copy(*dataset) : flush_dataset(*dataset);
}

Status Session::take_from_prefix(const RestartDecision& decision) {
  const auto candidate = prefix_.listed(decision.dataset);
  if (!candidate) return fail(Code::lost, "a dataset is no longer in {}", settings_.prefix);
  const bool goes_on = !attempts_.empty() && attempts_.back().dataset == decision.dataset;
  if (!goes_on) events_.happened("FETCH_START", candidate->info);
  const std::int64_t from_us = clock_.steady_us();
  const Status taken =
      decision.step == RestartStep::fetch ? take_into_cache(*candidate) : take_in_place(*candidate);
  if (!taken && decision.step == RestartStep::fetch && taken.error().code == Code::no_space) {
    warn("{} is not copied to the cache: {}", candidate->label(), taken.error().text);
    return taken;
  }
  log_fetch(*candidate, taken, seconds_since(from_us));
  if (taken) return taken;
  if (is_damage(taken.error().code)) prefix_.note_failed(candidate->info.uuid, taken.error().text);
  warn("{} in {} cannot be used: {}", candidate->label(), settings_.prefix, taken.error().text);
  return taken;
}

/// What SCR left comes into the listing as soon as a restart would take it.
void Session::import_what_comes_next() {
  while (prefix_.is_owned() && !settings_.prefix_purge) {
    const RestartDecision decision = decide();
    if (decision.step != RestartStep::import_first) return;
    carry_out(decision);
  }
}

/// Once in a run: the log, and `cairn run`, show that line and event where a restart was expected.
void Session::warn_from_scratch(const std::string& why) {
  if (std::exchange(from_scratch_, true)) return;
  warn("THE RUN STARTS FROM SCRATCH: {}", why);
  events_.happened("FRESH_START", why);
}

/// After the prefix directory was asked. Rank 0 knows what is passed over there.
void Session::report_what_is_passed_over() {
  const std::string passed_over =
      prefix_.report_passed_over(newest_restorable(), from_scratch_, tried_datasets(attempts_));
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

/// Asked again, it says the same: the answer must not be to start from scratch.
Status Session::refuse_to_start(const RestartDecision& refusal) {
  may_ask_again_ = refusal.step == RestartStep::refuse_for_now;
  Status why = fail(refusal.code, "{}", refusal.why);
  refusal_ = why;
  refusal_.error().is_reported = true;
  why.error().is_reported = !refusals_.is_news(refusal.why);
  return why;
}

Status Session::take_in_place(const DatasetRecord& candidate) {
  CAIRN_ASSIGN(const std::vector<RankRecord> records, prefix_.check_in_place(candidate));
  CachedDataset dataset;
  learn_names(candidate.info, records);
  if (written_by_as_many(candidate.info)) dataset.record = records.at(0);
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

Status Session::take_into_cache(const DatasetRecord& candidate) {
  CachedDataset dataset;
  dataset.info = candidate.info;
  const Level& level = levels_[choose_level(levels_, dataset.info)];
  dataset.store = level.store;
  dataset.flushed = true;
  dataset.checked = true;
  Store& store = stores_[dataset.store];
  dataset.parts = {store.rank_folder(dataset.info, comm_.rank())};
  CAIRN_ASSIGN(const RankRecord flushed, fetch_aside(candidate, store));
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
Result<RankRecord> Session::fetch_aside(const DatasetRecord& candidate, Store& store) {
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
  refusal_ = {};
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
  std::erase_if(datasets_, goes);
  if (!refusal_) ask_again();  // it may have been that one
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
    remove_everywhere(datasets_[i]);
    datasets_.erase(datasets_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  background_.wait();
  comm_.barrier();  // the room is there when this returns, on every rank's node
  // It may have been the one that was refused.
  if (!refusal_) ask_again();
  return unless_absent(prefix_.remove(name));
}

}  // namespace cairn
