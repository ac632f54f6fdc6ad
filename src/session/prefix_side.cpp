#include "session/prefix_side.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/units.hpp"
#include "prefix/fetch.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/in_place.hpp"
#include "prefix/tidy.hpp"

namespace cairn {

PrefixSide::PrefixSide(Communicator& comm, Files& files, Clock& clock, Background& background,
                       const Settings& settings, Log log, EventLog& events)
    : comm_(comm),
      files_(files),
      clock_(clock),
      background_(background),
      settings_(settings),
      log_(std::move(log)),
      events_(events),
      site_{files,
            clock,
            {settings.prefix},
            0,
            1,
            settings.copy_metadata,
            {settings.flush_width, settings.flush_bytes_per_s},
            {background, settings.io_threads, settings.io_piece_bytes},
            nullptr} {}

template <class... Args>
void PrefixSide::tell(Severity severity, fmt::format_string<Args...> format, Args&&... args) const {
  if (comm_.rank() != 0) return;
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  if (severity == Severity::info)
    log_.info("{}", text);
  else
    log_.warning("{}", text);
}

// --- becoming its owner ---

Status PrefixSide::open(const Placement& placement, const std::vector<CachedPart>& cached) {
  site_.ranks_on_node = static_cast<int>(placement.beside(comm_.rank()).size());
  if (!settings_.flush && !settings_.fetch) return {};
  std::int64_t there = 0;
  if (comm_.rank() == 0) {
    const auto info = files_.info(site_.folder.root());
    there = info || info.error().code != Code::not_found ? 1 : 0;
  }
  comm_.bcast(mutable_bytes_of(there), 0);
  if (there == 0) return {};
  Status owned = own(&cached);
  if (owned && settings_.prefix_purge) return purge();
  if (!owned && owned.error().code != Code::busy && !settings_.prefix_purge) {
    tell(Severity::warning, "nothing can be fetched or flushed now: {}", owned.error().text);
    trouble_ = owned.error().text;
    return {};
  }
  return owned;
}

/// That it takes a while, and why.
void PrefixSide::tell_rival(const OwnerRecord& me) const {
  const auto owner = read_owner(files_, site_.folder);
  if (!owner || !*owner || !is_rival(**owner, me)) return;
  tell(Severity::info,
       "{} was last used by job {} of {} on {}, which has not said that it ended: up to {} go by "
       "without a sign of its life before this one takes over",
       settings_.prefix, (*owner)->job_id, (*owner)->user, (*owner)->host,
       format_seconds(static_cast<double>(silence_us) * 1e-6));
}

Status PrefixSide::own(const std::vector<CachedPart>* cached) {
  if (owned_) return {};
  Status taken;
  if (comm_.rank() == 0) {
    OwnerRecord me;
    me.run = {clock_.now_us(), static_cast<std::int64_t>(clock_.random() >> 1)};
    me.job_id = settings_.job_id;
    me.user = settings_.user;
    me.host = settings_.node_name;
    me.process = static_cast<std::uint64_t>(::getpid());
    me.started_us = clock_.now_us();
    tell_rival(me);
    auto keeper = Keeper::take_over(files_, clock_, site_.folder, std::move(me));
    if (keeper)
      keeper_.emplace(*std::move(keeper));
    else
      taken = tl::unexpected(std::move(keeper).error());
  }
  CAIRN_TRY(agree(comm_, std::move(taken)));
  owned_ = true;
  if (keeper_) {
    site_.keeper = &*keeper_;
    heartbeat_ = background_.repeat(beat_period_us, keeper_->heartbeat());
    if (!heartbeat_)
      tell(Severity::warning,
           "no thread can be started to give signs of life in {}: another job that is given this "
           "directory would take it over; raise the limit of processes (ulimit -u)",
           settings_.prefix);
    site_.epoch = keeper_->epoch();
    for (const std::string& damaged : keeper_->damaged())
      tell(Severity::warning, "a dataset in the prefix directory cannot be used: {}", damaged);
  }
  comm_.bcast(mutable_bytes_of(site_.epoch), 0);
  if (const Status tidied = tidy_up(cached); !tidied)
    tell(Severity::warning, "what an earlier run has left in the prefix directory stays: {}",
         tidied.error().text);
  announce_extremes();
  announce_first();
  return {};
}

Status PrefixSide::tidy_up(const std::vector<CachedPart>* cached) {
  std::vector<DatasetRecord> published;
  Status tidied = tidy(comm_, site_, cached != nullptr ? *cached : std::vector<CachedPart>{},
                       cached != nullptr ? Unfinished::removed : Unfinished::left, &published);
  for (const DatasetRecord& record : published) {
    events_.happened("FLUSH_SUCCESS", record.info, {}, "begun by an earlier run");
    tell(Severity::info, "{} is in {}: the flush that an earlier run had begun is done",
         record.label(), settings_.prefix);
  }
  return tidied;
}

void PrefixSide::announce_extremes() {
  std::array<std::int64_t, 3> highest{};
  if (keeper_)
    for (const DatasetRecord& record : keeper_->listing()) {
      highest[0] = std::max(highest[0], static_cast<std::int64_t>(record.info.number));
      highest[1] = std::max(highest[1], static_cast<std::int64_t>(record.info.checkpoint));
      highest[2] = std::max(highest[2], record.info.uuid.time_us);
    }
  comm_.bcast(std::as_writable_bytes(std::span(highest)), 0);
  last_number_ = static_cast<std::uint64_t>(highest[0]);
  last_checkpoint_ = static_cast<std::uint64_t>(highest[1]);
  newest_us_ = highest[2];
}

void PrefixSide::mark_flushed(std::vector<CachedDataset>& datasets) {
  if (!owned_ || datasets.empty()) return;
  constexpr std::byte flushed{1};
  constexpr std::byte quarantined{2};
  Blob known(datasets.size());
  if (keeper_) {
    std::vector<std::string> damaged;
    const auto dropped = read_dropped(files_, site_.folder, damaged);
    for (std::size_t i = 0; i < datasets.size(); ++i) {
      const KnownInPrefix there = known_in_prefix(datasets[i].info.uuid, keeper_->listing(),
                                                  dropped.value_or(Listing{}), keeper_->attempts());
      if (there.flushed) known[i] |= flushed;
      if (there.quarantined) known[i] |= quarantined;
    }
    forget_attempts(datasets);
  }
  comm_.bcast(known, 0);
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    datasets[i].flushed = (known[i] & flushed) != std::byte{};
    datasets[i].quarantined = (known[i] & quarantined) != std::byte{};
  }
}

/// Those of checkpoints that the caches do not have any more.
void PrefixSide::forget_attempts(const std::vector<CachedDataset>& datasets) {
  Listing kept = keeper_->attempts();
  std::erase_if(kept, [&](const DatasetRecord& record) {
    return std::none_of(datasets.begin(), datasets.end(), [&](const CachedDataset& dataset) {
      return dataset.info.uuid == record.info.uuid;
    });
  });
  if (kept != keeper_->attempts()) (void)keeper_->set_attempts(std::move(kept));
}

/// SCR_PREFIX_PURGE: one after the other, as SCR_Delete does.
Status PrefixSide::purge() {
  std::vector<std::string> names;
  while (true) {
    const bool more = keeper_ && !keeper_->listing().empty();
    const auto record = share(more ? &keeper_->listing().back() : nullptr);
    if (!record) break;
    CAIRN_TRY(remove_dataset(*record));
    names.push_back(record->info.name);
  }
  tell(Severity::info, "SCR_PREFIX_PURGE=1: {} {} deleted from {}{}{}", names.size(),
       names.size() == 1 ? "dataset is" : "datasets are", settings_.prefix,
       names.empty() ? "" : ": ", fmt::join(names, ", "));
  announce_first();
  return {};
}

void PrefixSide::close() {
  if (!keeper_) return;
  heartbeat_.reset();
  // Whatever has happened, the next job need not wait.
  for (const Status& closed : {keeper_->save_listing(), keeper_->resign()})
    if (!closed) tell(Severity::warning, "{}", closed.error().text);
}

// --- flush ---

Status PrefixSide::claim() {
  CAIRN_TRY(own());
  return settle_older();
}

Status PrefixSide::publish(RankRecord& record, const std::string& label) {
  Status settled;
  const auto published = publish_in_place(comm_, site_, record, settings_.job_id, settled);
  if (!published) return tl::unexpected(published.error());
  newest_us_ = std::max(newest_us_, record.dataset.uuid.time_us);
  if (!settled)
    tell(Severity::warning, "{} is in {}, and is not the current one yet: {}", label,
         settings_.prefix, settled.error().text);
  save_listing();
  return keep_to_window();
}

Status PrefixSide::flush(const CachedDataset& dataset, const std::string& store,
                         const std::vector<std::string>& cached) {
  const std::int64_t from_us = clock_.steady_us();
  events_.happened("FLUSH_START", dataset.info);
  const auto account = copy_out(dataset, cached);
  const double seconds = static_cast<double>(clock_.steady_us() - from_us) * 1e-6;
  events_.happened(account ? "FLUSH_SUCCESS" : "FLUSH_FAIL", dataset.info, seconds,
                   account ? "" : account.error().text);
  if (!account) return tl::unexpected(account.error());
  events_.moved("FLUSH_SYNC", store, settings_.prefix, dataset.info, seconds, account->bytes,
                account->files);
  tell(Severity::info, "{} is in {}: {} in {} files, in {} ({}/s)", dataset.label(),
       settings_.prefix, format_bytes(account->bytes), account->files, format_seconds(seconds),
       format_bytes(static_cast<std::uint64_t>(static_cast<double>(account->bytes) /
                                               std::max(seconds, 1e-6))));
  return keep_to_window();
}

Result<FlushAccount> PrefixSide::copy_out(const CachedDataset& dataset,
                                          const std::vector<std::string>& cached) {
  CAIRN_TRY(claim());
  Status settled;
  CAIRN_ASSIGN(const FlushAccount account,
               cairn::flush(comm_, site_, dataset.record, cached, settings_.job_id, settled));
  if (!settled)
    tell(Severity::warning, "{}: some files still have no name of their own in {}: {}",
         dataset.label(), settings_.prefix, settled.error().text);
  carry_attempts_over(dataset.info);
  save_listing();
  return account;
}

Status PrefixSide::flush_parts(const DatasetInfo& dataset,
                               const std::vector<RecordedPart>& cached) {
  CAIRN_TRY(claim());
  events_.happened("FLUSH_START", dataset);
  const std::int64_t from_us = clock_.steady_us();
  Status flushed = cairn::flush_parts(comm_, site_, dataset, cached, settings_.job_id);
  events_.happened(flushed ? "FLUSH_SUCCESS" : "FLUSH_FAIL", dataset,
                   static_cast<double>(clock_.steady_us() - from_us) * 1e-6,
                   flushed ? "" : flushed.error().text);
  save_listing();
  announce_first();
  return flushed;
}

void PrefixSide::save_listing() {
  const Status listed =
      on_keeper(comm_, site_, [](Keeper& keeper) { return keeper.save_listing(); });
  if (!listed) tell(Severity::warning, "{}", listed.error().text);
}

/// Files that still have their staged names must not be given their own ones after this dataset's,
/// which may have the same.
Status PrefixSide::settle_older() {
  std::int64_t unsettled = 0;
  if (keeper_)
    for (const DatasetRecord& record : keeper_->listing())
      if (!record.settled) unsettled = 1;
  comm_.bcast(mutable_bytes_of(unsettled), 0);
  return unsettled == 0 ? Status{} : tidy_up(nullptr);
}

/// Rank 0's record on all ranks; nothing for null.
std::optional<DatasetRecord> PrefixSide::share(const DatasetRecord* record) {
  Blob blob = record != nullptr ? encode(*record) : Blob{};
  bcast_blob(comm_, blob, 0);
  if (blob.empty()) return std::nullopt;
  return decode_dataset_record(blob).value();
}

/// SCR_PREFIX_SIZE: the oldest checkpoints go, outputs stay.
Status PrefixSide::keep_to_window() {
  while (settings_.prefix_size > 0) {
    const DatasetRecord* oldest = nullptr;
    int checkpoints = 0;
    if (keeper_)
      for (const DatasetRecord& record : keeper_->listing())
        if (record.info.is_checkpoint() && !record.info.is_output() &&
            ++checkpoints > settings_.prefix_size)
          oldest = &record;
    const auto goes = share(oldest);
    if (!goes) return {};
    if (const Status removed = remove_dataset(*goes); !removed) {
      tell(Severity::warning, "{} stays in the prefix directory: {}", goes->label(),
           removed.error().text);
      return {};
    }
  }
  return {};
}

// --- fetch ---

const DatasetRecord* PrefixSide::find(const std::string& name) const {
  return keeper_ ? find_named(keeper_->listing(), name) : nullptr;
}

/// On rank 0.
const DatasetRecord* PrefixSide::choose_candidate() const {
  if (!keeper_ || !settings_.fetch) return nullptr;
  return next_to_fetch(keeper_->listing(), settings_.current, keeper_->current(), tried_);
}

void PrefixSide::announce_first() { first_ = share(choose_candidate()); }

Status PrefixSide::check_ranks(const Uuid& newer_than) const {
  if (!first_ || first_->info.uuid <= newer_than || has_right_ranks(*first_, ranks(), settings_))
    return {};
  return tl::unexpected(wrong_ranks(*first_, ranks(), settings_));
}

void PrefixSide::tell_quarantined(const Uuid& offered) {
  if (!keeper_ || std::exchange(quarantine_told_, true)) return;
  Listing all = keeper_->listing();
  all.insert(all.end(), keeper_->attempts().begin(), keeper_->attempts().end());
  for (const DatasetRecord& record : all) {
    if (!record.quarantined || !record.info.is_checkpoint() || record.info.uuid <= offered)
      continue;
    tell(Severity::warning,
         "{}{} is in quarantine, as {} restarts from it have died, and is passed over; \"cairn "
         "index "
         "quarantine --lift {}\" brings it back",
         offered == Uuid{} ? "THE RUN STARTS FROM ZERO, although there is a checkpoint: " : "",
         record.label(), record.attempts, record.info.name);
  }
}

Result<std::optional<DatasetRecord>> PrefixSide::next_candidate(const Uuid& newer_than) {
  if (!owned_) return std::nullopt;
  while (true) {
    if (keeper_ && tried_.empty() && !settings_.current.empty() && !find(settings_.current))
      tell(Severity::warning, "SCR_CURRENT={}: there is no such checkpoint in {}",
           settings_.current, settings_.prefix);
    const auto shared = share(choose_candidate());
    const FetchStep step = step_for(shared ? &*shared : nullptr, newer_than, ranks(), settings_);
    if (step == FetchStep::none) {
      if (shared && tried_.empty() && shared->info.name == settings_.current &&
          shared->info.uuid != newer_than)
        tell(Severity::warning,
             "SCR_CURRENT={} is passed over: the caches have a newer checkpoint, and go before the "
             "prefix directory; SCR_CACHE_PURGE=1 for one run gives up what they have",
             settings_.current);
      return std::nullopt;
    }
    tried_.insert(shared->info.uuid);
    if (step == FetchStep::take) return *shared;
    if (step == FetchStep::refuse) return tl::unexpected(wrong_ranks(*shared, ranks(), settings_));
  }
}

Result<RankRecord> PrefixSide::fetch(const DatasetRecord& dataset, const RankFolder& into) {
  return cairn::fetch(comm_, site_, dataset, into);
}

Result<std::vector<RankRecord>> PrefixSide::check_in_place(const DatasetRecord& dataset) {
  return cairn::check_in_place(comm_, site_, dataset);
}

std::unique_ptr<FileFinder> PrefixSide::finder(const DatasetRecord& dataset) const {
  return std::make_unique<FileFinder>(files_, site_.folder, dataset, comm_.rank(), comm_.size());
}

// --- what became of a dataset ---

bool PrefixSide::is_listed(const Uuid& uuid) const {
  return std::any_of(keeper_->listing().begin(), keeper_->listing().end(),
                     [&](const DatasetRecord& record) { return record.info.uuid == uuid; });
}

template <class Change>
void PrefixSide::change_record(const Uuid& uuid, Change change) {
  if (!keeper_) return;
  for (const DatasetRecord& known : keeper_->listing()) {
    if (known.info.uuid != uuid) continue;
    DatasetRecord record = known;
    change(record);
    Status kept = keeper_->update(record);
    if (kept) kept = keeper_->save_listing();
    if (!kept) tell(Severity::warning, "{}: {}", record.label(), kept.error().text);
    return;
  }
}

void PrefixSide::note_fetched(const Uuid& uuid) {
  change_record(uuid, [&](DatasetRecord& record) { record.fetched_us = clock_.now_us(); });
}

void PrefixSide::note_failed(const Uuid& uuid, const std::string& reason) {
  change_record(uuid, [&](DatasetRecord& record) {
    record.failed_us = clock_.now_us();
    record.failure = reason;
  });
}

void PrefixSide::count_attempt(DatasetRecord& record) {
  ++record.attempts;
  if (settings_.restart_attempts == 0 ||
      record.attempts < static_cast<std::uint32_t>(settings_.restart_attempts))
    return;
  record.quarantined = true;
  tell(Severity::warning,
       "{}: this is attempt {} to restart from it, and the last: should the run die again, an "
       "older checkpoint is taken (CAIRN_RESTART_ATTEMPTS); cairn index quarantine --lift {} "
       "brings it back",
       record.label(), record.attempts, record.info.name);
}

/// Of a dataset that only the caches have. `change` says whether its record is to be kept.
template <class Change>
void PrefixSide::change_attempts(const DatasetInfo& dataset, Change change) {
  Listing attempts = keeper_->attempts();
  const auto known = std::find_if(attempts.begin(), attempts.end(), [&](const auto& record) {
    return record.info.uuid == dataset.uuid;
  });
  DatasetRecord record;
  record.info = dataset;
  record.job_id = settings_.job_id;
  if (known != attempts.end()) {
    record = *known;
    attempts.erase(known);
  }
  if (change(record)) attempts.push_back(record);
  if (attempts == keeper_->attempts()) return;
  const Status kept = keeper_->set_attempts(std::move(attempts));
  if (!kept) tell(Severity::warning, "{}: {}", record.label(), kept.error().text);
}

void PrefixSide::note_attempt(const DatasetInfo& dataset) {
  if (!settings_.flush && !settings_.fetch) return;
  if (const Status owned = own(); !owned) {
    tell(Severity::warning, "the restarts from {} are not counted: {}", dataset.name,
         owned.error().text);
    return;
  }
  if (!keeper_) return;
  if (is_listed(dataset.uuid))
    return change_record(dataset.uuid, [this](DatasetRecord& record) { count_attempt(record); });
  change_attempts(dataset, [this](DatasetRecord& record) {
    count_attempt(record);
    return true;
  });
}

void PrefixSide::note_restarted(const DatasetInfo& dataset) {
  if (!keeper_) return;
  change_record(dataset.uuid, [](DatasetRecord& record) {
    record.attempts = 0;
    record.quarantined = false;
  });
  change_attempts(dataset, [](DatasetRecord&) { return false; });
}

/// It is there now.
void PrefixSide::carry_attempts_over(const DatasetInfo& dataset) {
  if (!keeper_) return;
  change_attempts(dataset, [&](const DatasetRecord& counted) {
    if (counted.attempts > 0)
      change_record(dataset.uuid, [&](DatasetRecord& record) {
        record.attempts = counted.attempts;
        record.quarantined = counted.quarantined;
      });
    return false;
  });
}

// --- by name ---

Result<DatasetRecord> PrefixSide::share_record(const std::string& call, const std::string& name) {
  if (const auto known = share(find(name))) return *known;
  return fail(Code::not_found, "{}: there is no dataset {} in {}", call, name, settings_.prefix);
}

namespace {

/// Outputs stay, as they do in the caches.
Status drop_newer(Keeper& keeper, const Uuid& than) {
  const Listing listing = keeper.listing();
  for (const DatasetRecord& record : listing)
    if (than < record.info.uuid && record.info.is_checkpoint() && !record.info.is_output())
      CAIRN_TRY(keeper.drop(record.info));
  return keeper.save_listing();
}

}  // namespace

Status PrefixSide::current(const std::string& name) {
  CAIRN_ASSIGN(const DatasetRecord record, share_record("SCR_Current", name));
  Status made = on_keeper(comm_, site_, [&](Keeper& keeper) {
    const Status set = keeper.set_current(name);
    return set && settings_.drop_after_current ? drop_newer(keeper, record.info.uuid) : set;
  });
  announce_first();
  return made;
}

Status PrefixSide::drop(const std::string& name) {
  CAIRN_ASSIGN(const DatasetRecord record, share_record("SCR_Drop", name));
  Status dropped = on_keeper(comm_, site_, [&](Keeper& keeper) -> Status {
    CAIRN_TRY(keeper.drop(record.info));
    return keeper.save_listing();
  });
  announce_first();
  return dropped;
}

/// All that have the name.
Status PrefixSide::remove(const std::string& name) {
  CAIRN_TRY(share_record("SCR_Delete", name));
  Status removed;
  while (removed) {
    const auto record = share(find(name));
    if (!record) break;
    removed = remove_dataset(*record);
  }
  announce_first();
  return removed;
}

Status PrefixSide::remove_dataset(const DatasetRecord& record) {
  CAIRN_TRY(on_keeper(comm_, site_, [&](Keeper& keeper) { return keeper.take_out(record.info); }));
  CAIRN_TRY(remove_files(comm_, site_, record.info, record.ranks_per_manifest));
  return on_keeper(comm_, site_, [](Keeper& keeper) { return keeper.save_listing(); });
}

}  // namespace cairn
