#include "session/prefix_side.hpp"

#include <algorithm>
#include <span>

#include "base/count.hpp"
#include "base/units.hpp"
#include "prefix/contents.hpp"
#include "prefix/fetch.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/in_place.hpp"
#include "prefix/remove_files.hpp"
#include "prefix/tidy.hpp"

namespace cairn {

PrefixSide::PrefixSide(Communicator& comm, Files& files, Clock& clock, Background& background,
                       const Settings& settings, Log log, EventLog& events, CachedParts cached)
    : comm_(comm),
      files_(files),
      clock_(clock),
      background_(background),
      settings_(settings),
      log_(std::move(log)),
      events_(events),
      cached_(std::move(cached)),
      site_{files,
            clock,
            {settings.prefix},
            0,
            1,
            settings.copy_metadata,
            {settings.flush_width, settings.flush_bytes_per_s, settings.fetch_width},
            {background, settings.io_threads, settings.io_piece_bytes},
            nullptr},
      scr_(comm, settings, log_) {}

// --- flush ---

Status PrefixSide::publish(RankRecord& record, const std::string& label, bool took,
                           std::string& open_elsewhere) {
  Status settled;
  const auto published = publish_in_place(comm_, site_, record, settings_.job_id, settled, took);
  if (!published) return tl::unexpected(published.error());
  open_elsewhere = published->open_elsewhere;
  handle_replaced(record.dataset, published->replaced);
  newest_us_ = std::max(newest_us_, record.dataset.uuid.time_us);
  if (!settled)
    tell(Severity::warning, "{} is in {}, but is not current yet: {}", label, settings_.prefix,
         settled.error().text);
  save_listing();
  return keep_to_window();
}

Status PrefixSide::flush(const CachedDataset& dataset, const std::string& store,
                         const std::vector<std::string>& cached) {
  const std::int64_t from_us = clock_.steady_us();
  events_.happened("FLUSH_START", dataset.info);
  const auto account = copy_out(dataset, cached);
  const double seconds = seconds_since(from_us);
  CAIRN_TRY(log_flush(dataset.info, store, account, seconds));
  tell(Severity::info, "{} is in {}: {} in {}, in {} ({}/s)", dataset.label(), settings_.prefix,
       format_bytes(account->bytes), count_text(account->files, "file"), format_seconds(seconds),
       format_bytes(static_cast<std::uint64_t>(static_cast<double>(account->bytes) /
                                               std::max(seconds, 1e-6))));
  return keep_to_window();
}

/// The error, if it is one.
Status PrefixSide::log_flush(const DatasetInfo& dataset, const std::string& store,
                             const Result<FlushAccount>& account, double seconds) {
  events_.happened(account ? "FLUSH_SUCCESS" : "FLUSH_FAIL", dataset, seconds,
                   account ? "" : account.error().text);
  if (!account) return tl::unexpected(account.error());
  events_.moved("FLUSH_SYNC", store, settings_.prefix, dataset, seconds, account->bytes,
                account->files);
  return {};
}

Result<FlushAccount> PrefixSide::copy_out(const CachedDataset& dataset,
                                          const std::vector<std::string>& cached) {
  Status settled;
  CAIRN_ASSIGN(const FlushAccount account,
               cairn::flush(comm_, site_, dataset.record, cached, settings_.job_id, settled));
  if (!settled)
    tell(Severity::warning, "{}: some files in {} still have temporary names: {}", dataset.label(),
         settings_.prefix, settled.error().text);
  handle_replaced(dataset.info, account.replaced);
  carry_attempts_over(dataset.info);
  save_listing();
  return account;
}

void PrefixSide::handle_replaced(const DatasetInfo& dataset,
                                 const Result<std::vector<Replaced>>& replaced) {
  mark_again();
  if (replaced) return warn_replaced(*replaced);
  unmarked_.insert(site_.folder.dataset(dataset));
  tell(Severity::warning,
       "cannot find out which older datasets lost files to dataset {} in {}: {}. Until Cairn tries "
       "again with the next dataset, cairn index list may show these as published. No restart uses "
       "a dataset whose files have changed",
       dataset.number, settings_.prefix, replaced.error().text);
}

/// What failed for a reason that may be gone. A run that ends before that leaves it to cairn
/// verify.
void PrefixSide::mark_again() {
  const std::set<std::string> again = std::exchange(unmarked_, {});
  for (const std::string& folder : again) {
    const auto marked = mark_replaced(comm_, site_, folder, true);
    if (marked) warn_replaced(*marked);
    if (!marked) unmarked_.insert(folder);
  }
}

/// Once: a program that does so does it each time.
void PrefixSide::warn_replaced(const std::vector<Replaced>& replaced) {
  if (replaced.empty() || std::exchange(replaced_told_, true)) return;
  const Replaced& first = replaced.front();
  tell(Severity::warning,
       "{} has overwritten {} of {} in {}, so no restart can use {} there; give the files of each "
       "dataset different names, for example with its number in them",
       first.newer, first.file, first.older, settings_.prefix, first.older);
}

Result<DatasetInfo> PrefixSide::find_parts(const DatasetInfo& dataset,
                                           const std::vector<CachedPart>& cached,
                                           const ReadRecord& read) {
  return cairn::find_parts(comm_, site_, dataset, cached, read);
}

Status PrefixSide::flush_parts(const DatasetInfo& dataset, const std::string& store,
                               const std::vector<CachedPart>& cached, const ReadRecord& read) {
  events_.happened("FLUSH_START", dataset);
  const std::int64_t from_us = clock_.steady_us();
  const auto account = cairn::flush_parts(comm_, site_, dataset, cached, read, settings_.job_id);
  Status flushed = log_flush(dataset, store, account, seconds_since(from_us));
  if (account) handle_replaced(dataset, account->replaced);
  if (flushed) carry_attempts_over(dataset);
  save_listing();
  announce_first();
  return flushed;
}

void PrefixSide::save_listing() {
  const Status listed =
      on_keeper(comm_, site_, [](Keeper& keeper) { return keeper.save_listing(); });
  if (!listed) tell(Severity::warning, "{}", listed.error().text);
}

/// Rank 0's record on all ranks; nothing for null.
std::optional<DatasetRecord> PrefixSide::share(const DatasetRecord* record) {
  Blob blob = record != nullptr ? encode(*record) : Blob{};
  bcast_blob(comm_, blob, 0);
  if (blob.empty()) return std::nullopt;
  return decode_dataset_record(blob).value();
}

/// SCR_PREFIX_SIZE: of the checkpoints the oldest goes, but first those from which no run restarts:
/// they must not push out what is good. Outputs stay, and files that Cairn did not write.
const DatasetRecord* PrefixSide::next_to_go() const {
  const DatasetRecord* oldest = nullptr;
  const DatasetRecord* oldest_useless = nullptr;
  int checkpoints = 0;
  if (!keeper_) return nullptr;
  for (const DatasetRecord& record : keeper_->listing()) {
    const DatasetInfo& info = record.info;
    if (!info.is_checkpoint() || info.is_output() || info.was_found()) continue;
    ++checkpoints;
    oldest = &record;
    if (record.quarantined || !record.is_sound()) oldest_useless = &record;
  }
  if (checkpoints <= settings_.prefix_size) return nullptr;
  return oldest_useless != nullptr ? oldest_useless : oldest;
}

Status PrefixSide::keep_to_window() {
  while (settings_.prefix_size > 0) {
    const auto goes = share(next_to_go());
    if (!goes) return {};
    if (const Status removed = remove_dataset(*goes); !removed) {
      tell(Severity::warning, "{}", removed.error().text);
      return {};
    }
  }
  return {};
}

// --- fetch ---

const DatasetRecord* PrefixSide::find(const std::string& name) const {
  return keeper_ ? find_named(keeper_->listing(), name) : nullptr;
}

void PrefixSide::announce_first() {
  first_ = share(keeper_ ? next_to_fetch(keeper_->listing(), settings_, keeper_->current(), {})
                         : nullptr);
}

Status PrefixSide::check_ranks(const Uuid& newer_than) const {
  if (!first_ || first_->info.uuid <= newer_than || has_right_ranks(*first_, ranks(), settings_))
    return {};
  return tl::unexpected(wrong_ranks(*first_, ranks(), settings_));
}

/// How one in quarantine comes back, and until when it can.
std::string PrefixSide::lifted_by(const DatasetRecord& record) const {
  const bool listed = find(record.info.uuid) != nullptr;
  return fmt::format(
      "\"cairn index quarantine --lift {}\" lets restarts use it again, {}", record.info.name,
      !listed ? "as long as the prefix directory has it; if only the caches have it, until a newer "
                "checkpoint is complete"
      : settings_.prefix_size > 0 ? "until SCR_PREFIX_SIZE deletes it, before all others"
                                  : "as long as it is in the prefix directory");
}

/// And what brings it back.
std::string PrefixSide::why_passed_over(const DatasetRecord& record,
                                        const std::set<Uuid>& tried) const {
  const std::string& name = record.info.name;
  if (record.quarantined)
    return fmt::format("is not used: it is in quarantine, {}. {}", why_in_quarantine(record),
                       lifted_by(record));
  if (!record.replaced_by.empty())
    return fmt::format("is not used: {} has overwritten some of its files", record.replaced_by);
  if (record.failed_us != 0)
    return fmt::format(
        "is not used: an earlier restart from it failed ({}); \"cairn verify --repair {}\" repairs "
        "it if that is possible, and \"cairn index quarantine --lift {}\" lets restarts use it "
        "again",
        record.failure, name, name);
  if (!settings_.fetch) return "is not fetched, because SCR_FETCH=0";
  if (!has_right_ranks(record, ranks(), settings_))
    return fmt::format(
        "is not used: it was written by {} ranks, and CAIRN_ON_MISMATCH=fresh is set",
        record.info.ranks);
  if (tried.contains(record.info.uuid)) return "was tried, but could not be used";
  if (settings_.on_fetch_fail == OnFetchFail::fresh)
    return "is not tried, because CAIRN_ON_FETCH_FAIL=fresh";
  return "is not tried";
}

/// Where the caches have another one than somebody has named. That the newest there is older than
/// what the caches have is as it always is.
void PrefixSide::tell_of_current(const Uuid& offered, const std::set<Uuid>& tried) const {
  const DatasetRecord* current = find(keeper_->current());
  if (offered == Uuid{} || current == nullptr || !current->info.is_checkpoint()) return;
  if (tried.contains(offered) || tried.contains(current->info.uuid)) return;  // told already
  const bool marked = current->quarantined || !current->is_sound();
  if (current->info.uuid > offered && !marked)
    return tell(
        Severity::warning,
        "{}, the current dataset of {}, {}. The restart uses an older checkpoint from the caches",
        current->label(), settings_.prefix, why_passed_over(*current, tried));
  const Listing& listing = keeper_->listing();
  const bool went_back = std::any_of(listing.begin(), listing.end(), [&](const auto& record) {
    return record.info.is_checkpoint() && record.info.uuid > current->info.uuid;
  });
  if (current->info.uuid < offered && went_back && settings_.current.empty())
    tell(Severity::warning,
         "{}, the current dataset of {}, is not used: the caches have a newer checkpoint. To use "
         "it nevertheless, delete the caches by setting SCR_CACHE_PURGE=1 for one run",
         current->label(), settings_.prefix);
}

std::string PrefixSide::report_passed_over(const Uuid& offered, bool is_known,
                                           const std::set<Uuid>& tried) {
  if (!keeper_ || std::exchange(passed_over_for_, offered) == offered) return "";
  std::string newest;
  bool is_wanted = offered == Uuid{} && !is_known;
  const auto report = [&](const DatasetRecord& record, bool is_reported) {
    if (!record.info.is_checkpoint() || record.info.uuid <= offered) return;
    const bool marked = record.quarantined || !record.is_sound();
    const std::string text = fmt::format("{} {}", record.label(), why_passed_over(record, tried));
    if (std::exchange(is_wanted, false))
      newest = text;
    else if (marked && !is_reported)
      tell(Severity::warning, "{}", text);
  };
  tell_of_current(offered, tried);
  for (const DatasetRecord& record : keeper_->listing())
    report(record, tried.contains(record.info.uuid));
  for (const DatasetRecord& record : keeper_->attempts())
    if (record.quarantined) report(record, false);
  if (is_wanted && !keeper_->damaged().empty())
    newest = fmt::format("its record cannot be read: {}", keeper_->damaged().front());
  else if (is_wanted)
    newest = scr_.why_useless(site_);
  return newest;
}

void PrefixSide::tell_facts(RestartFacts& facts) {
  facts.trouble = trouble_;
  if (!keeper_) return;
  facts.listing = keeper_->listing();
  facts.unread = keeper_->unread();
  facts.current = keeper_->current();
  scr_.tell_facts(site_, facts);
}

/// Cairn knows more of what a restart would take then.
Status PrefixSide::import_from_scr(const Uuid& dataset) {
  const Status imported = scr_.import(site_, dataset);
  if (!imported) return imported;
  has_news_ = true;
  save_listing();
  announce_extremes();
  announce_first();
  return {};
}

Result<RankRecord> PrefixSide::fetch(const DatasetRecord& dataset, const RankFolder& into) {
  return cairn::fetch(comm_, site_, dataset, into);
}

Result<std::vector<RankRecord>> PrefixSide::check_in_place(const DatasetRecord& dataset) {
  return cairn::check_in_place(comm_, site_, dataset);
}

// --- what became of a dataset ---

/// On rank 0.
const DatasetRecord* PrefixSide::find(const Uuid& uuid) const {
  return keeper_ ? find_in(keeper_->listing(), uuid) : nullptr;
}

std::optional<DatasetRecord> PrefixSide::listed(const Uuid& uuid) { return share(find(uuid)); }

std::optional<DatasetRecord> PrefixSide::newest_sound() {
  const DatasetRecord* newest = nullptr;
  if (keeper_)
    for (const DatasetRecord& record : keeper_->listing())
      if (newest == nullptr && record.info.is_checkpoint() && record.is_sound()) newest = &record;
  return share(newest);
}

template <class Change>
void PrefixSide::change_record(const Uuid& uuid, Change change) {
  const DatasetRecord* known = find(uuid);
  if (known == nullptr) return;
  DatasetRecord record = *known;
  change(record);
  Status kept = keeper_->update(record);
  if (kept) kept = keeper_->save_listing();
  if (!kept) tell(Severity::warning, "{}: {}", record.label(), kept.error().text);
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
       "{}: attempt {} to restart from it is the last (CAIRN_RESTART_ATTEMPTS): if this run dies "
       "too, the next one uses an older checkpoint. {}",
       record.label(), record.attempts, lifted_by(record));
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

bool PrefixSide::note_attempt(const DatasetInfo& dataset) {
  if (!settings_.flush && !settings_.fetch) return false;
  if (const Status owned = own(); !owned) {
    tell(Severity::warning, "cannot count the restarts from {}: {}", dataset.name,
         owned.error().text);
    return false;
  }
  if (!keeper_) return false;
  if (find(dataset.uuid) != nullptr)
    change_record(dataset.uuid, [this](DatasetRecord& record) { count_attempt(record); });
  else
    change_attempts(dataset, [this](DatasetRecord& record) {
      count_attempt(record);
      return true;
    });
  return true;
}

/// It may have come to be there meanwhile.
void PrefixSide::take_back_attempt(const DatasetInfo& dataset) {
  if (!keeper_) return;
  const auto take_back = [](DatasetRecord& record) {
    if (record.attempts > 0) --record.attempts;
    record.quarantined = false;
    return record.attempts > 0;
  };
  change_record(dataset.uuid, take_back);
  change_attempts(dataset, take_back);
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

/// Where one of those that cannot be read now was begun no earlier than `from`. Agreed.
Status PrefixSide::refuse_unread(const std::string& what, const Uuid& from) {
  return on_keeper(comm_, site_, [&](const Keeper& keeper) {
    return cairn::refuse_unread(keeper.unread(), what, from);
  });
}

/// The newest of that name.
Result<DatasetRecord> PrefixSide::share_record(const std::string& call, const std::string& name) {
  const auto known = share(find(name));
  CAIRN_TRY(refuse_unread(fmt::format("which dataset in {} is {}", settings_.prefix, name),
                          known ? known->info.uuid : Uuid{}));
  if (known) return *known;
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

Result<DatasetInfo> PrefixSide::current(const std::string& name) {
  CAIRN_TRY(look_again());
  if (owned_) CAIRN_TRY(scr_.import_named(site_, name).map([](bool) {}));
  CAIRN_ASSIGN(const DatasetRecord record, share_record("SCR_Current", name));
  if (settings_.drop_after_current) give_names_before_drop();
  const Status made = on_keeper(comm_, site_, [&](Keeper& keeper) -> Status {
    CAIRN_TRY(keeper.set_current(name));
    if (!settings_.drop_after_current) return {};
    CAIRN_TRY(scr_.drop_newer(site_, record.info.uuid));
    return drop_newer(keeper, record.info.uuid);
  });
  announce_first();
  CAIRN_TRY(made);
  return record.info;
}

Status PrefixSide::drop(const std::string& name) {
  CAIRN_TRY(look_again());
  CAIRN_ASSIGN(const bool is_of_scr, owned_ ? scr_.drop_named(site_, name) : Result<bool>(false));
  if (is_of_scr) return {};
  CAIRN_ASSIGN(const DatasetRecord record, share_record("SCR_Drop", name));
  give_names_before_drop();
  Status dropped = drop_dataset(record);
  announce_first();
  return dropped;
}

/// The files of what is dropped stay: under names that somebody can find them by.
void PrefixSide::give_names_before_drop() {
  if (const Status settled = settle_older(); !settled)
    tell(Severity::warning, "some files in {} may keep their temporary names: {}", settings_.prefix,
         settled.error().text);
}

Status PrefixSide::drop_dataset(const DatasetRecord& record) {
  return on_keeper(comm_, site_, [&](Keeper& keeper) -> Status {
    CAIRN_TRY(keeper.drop(record.info));
    return keeper.save_listing();
  });
}

/// All that have the name.
Status PrefixSide::remove(const std::string& name) {
  CAIRN_TRY(look_again());
  if (owned_) CAIRN_TRY(scr_.import_to_delete(site_, name));
  CAIRN_TRY(on_keeper(comm_, site_, [&](Keeper& keeper) { return delete_saved(keeper, name); }));
  auto record = share_record("SCR_Delete", name);
  if (!record) return tl::unexpected(record.error());
  Status removed;
  for (; removed && record; record = share_record("SCR_Delete", name)) {
    removed = remove_dataset(*record);
    // SCR may have left an older dataset of this name, which the deleted one has hidden.
    if (removed && owned_) removed = scr_.import_to_delete(site_, name);
  }
  announce_first();
  const bool all = record || record.error().code == Code::not_found;
  return all ? removed : tl::unexpected(record.error());
}

Status PrefixSide::remove_dataset(const DatasetRecord& record) {
  CAIRN_TRY(take_out(record));
  return remove_files_of(record);
}

/// Not where other datasets may not be asked, then, whether they have the same files.
Status PrefixSide::take_out(const DatasetRecord& record) {
  const Status taken_out = on_keeper(comm_, site_, [&](Keeper& keeper) -> Status {
    CAIRN_TRY(refuse_unread_beside(keeper.unread()));
    return keeper.take_out_for_good(record);
  });
  if (taken_out) return {};
  return fail(taken_out.error().code, "{} was not deleted from {}: {}", record.label(),
              settings_.prefix, taken_out.error().text);
}

Status PrefixSide::remove_files_of(const DatasetRecord& record) {
  const auto kept = remove_files(comm_, site_, record.info, record.ranks_per_manifest);
  if (!kept)
    return fail(kept.error().code,
                "{} is deleted from {}, but some of its files could not be removed: {}; the next "
                "run tries again",
                record.label(), settings_.prefix, kept.error().text);
  if (const std::string said = said_of_kept(*kept); !said.empty())
    tell(kept->is_as_written() ? Severity::info : Severity::warning, "{} is deleted from {}: {}",
         record.label(), settings_.prefix, said);
  return on_keeper(comm_, site_, [](Keeper& keeper) { return keeper.save_listing(); });
}

}  // namespace cairn
