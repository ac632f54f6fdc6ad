#include "session/prefix_side.hpp"

#include <algorithm>

#include "base/count.hpp"
#include "base/units.hpp"
#include "prefix/choose_current.hpp"
#include "prefix/flush.hpp"
#include "prefix/in_place.hpp"
#include "restart/passed_over.hpp"

namespace cairn {

PrefixSide::PrefixSide(Files& files, Clock& clock, Background& background, const Settings& settings,
                       Log log, EventLog& events, PrefixOwner::CachedParts cached,
                       IsItself is_itself)
    : files_(files),
      clock_(clock),
      settings_(settings),
      log_(std::move(log)),
      events_(events),
      cached_(std::move(cached)),
      is_itself_(std::move(is_itself)),
      book_(clock, settings, log_),
      marks_(log_),
      scr_(settings, log_),
      retention_(settings, log_),
      saved_(settings, log_),
      owner_({files, clock, background, settings, log_, events, book_, marks_, scr_, cached_,
              is_itself_}) {}

Status PrefixSide::open(Communicator& comm, int ranks_on_node) {
  CAIRN_TRY(owner_.open(comm, ranks_on_node));
  return owner_.is_owned() && purges_prefix(settings_) ? purge(comm) : Status{};
}

Status PrefixSide::purge(Communicator& comm) {
  CAIRN_TRY(check_unread(comm, UnreadMatters::purge));
  CAIRN_TRY(on_keeper(comm, owner_.site(), [&](Keeper&) { return saved_.purge(owner_.site()); }));
  CAIRN_TRY(scr_.pass_over(comm, owner_.site()));
  CAIRN_TRY(retention_.purge(comm, owner_.site(), cached_()));
  const HighestNumbers before = owner_.highest();
  owner_.announce(comm);
  owner_.highest() = before;  // in the log of the job no two datasets have one number
  return {};
}

// --- flush ---

namespace {

Site for_copies(Site site, std::int64_t end_us, bool repairs) {
  site.end_us = end_us;
  site.repairs = repairs;
  return site;
}

}  // namespace

Status PrefixSide::publish(Communicator& comm, RankRecord& record, const std::string& label,
                           bool took, std::string& open_elsewhere) {
  const auto published = publish_in_place(comm, owner_.site(), record, settings_.job_id, took);
  if (!published) return tl::unexpected(published.error());
  open_elsewhere = published->open_elsewhere;
  marks_.take(comm, owner_.site(), record.dataset, published->replaced);
  owner_.highest().time_us = std::max(owner_.highest().time_us, record.dataset.uuid.time_us);
  if (!published->settled)
    log_.warning("{} is in {}, but is not current yet: {}", label, settings_.prefix,
                 published->settled.error().text);
  save_listing(comm);
  retention_.keep_to_window(comm, owner_.site());
  return {};
}

Status PrefixSide::flush(Communicator& comm, const CachedDataset& dataset, const std::string& store,
                         const std::vector<std::string>& cached, std::int64_t end_us) {
  const std::int64_t from_us = clock_.steady_us();
  events_.happened("FLUSH_START", dataset.info);
  const auto account = copy_out(comm, dataset, cached, end_us);
  const double seconds = seconds_since(from_us);
  CAIRN_TRY(log_flush(waited_for, dataset.info, store, account, seconds));
  log_copy(dataset.label(), *account, seconds, "");
  retention_.keep_to_window(comm, owner_.site());
  return {};
}

void PrefixSide::log_copy(const std::string& label, const FlushAccount& account, double seconds,
                          std::string_view how) {
  log_.info("{} is in {}: {} in {}, in {} ({}/s){}", label, settings_.prefix,
            format_bytes(account.record.bytes), count_text(account.record.files, "file"),
            format_seconds(seconds),
            format_bytes(static_cast<std::uint64_t>(static_cast<double>(account.record.bytes) /
                                                    std::max(seconds, 1e-6))),
            how);
}

/// The error, if it is one.
Status PrefixSide::log_flush(const FlushEvents& names, const DatasetInfo& dataset,
                             const std::string& store, const Result<FlushAccount>& account,
                             double seconds) {
  events_.happened(account ? names.success : names.failure, dataset, seconds,
                   account ? "" : account.error().text);
  if (!account) return tl::unexpected(account.error());
  events_.moved(names.transfer, store, settings_.prefix, dataset, seconds, account->record.bytes,
                account->record.files);
  return {};
}

Result<FlushAccount> PrefixSide::copy_out(Communicator& comm, const CachedDataset& dataset,
                                          const std::vector<std::string>& cached,
                                          std::int64_t end_us) {
  CAIRN_ASSIGN(const FlushAccount account,
               cairn::flush(comm, for_copies(owner_.site(), end_us, true), dataset.record, cached,
                            settings_.job_id));
  if (!account.settled)
    log_.warning("{}: some files in {} still have temporary names: {}", dataset.label(),
                 settings_.prefix, account.settled.error().text);
  keep_books(comm, dataset.info, account);
  return account;
}

void PrefixSide::keep_books(Communicator& comm, const DatasetInfo& dataset,
                            const FlushAccount& account) {
  marks_.take(comm, owner_.site(), dataset, account.replaced);
  book_.carry_over(owner_.site().keeper, dataset);
  save_listing(comm);
}

/// The directory is still this run's, and no file of an older dataset will still be given its name.
Status PrefixSide::check_before_flush(Communicator& alone) {
  Keeper& keeper = *owner_.site().keeper;
  CAIRN_TRY(keeper.check_rights(is_itself_));
  keeper.read_again();
  CAIRN_TRY(owner_.settle_older(alone));
  return cairn::check_unread(UnreadMatters::begin, keeper.known().unread);
}

/// The communicator is that of the thread alone.
OwnerFlush::Books PrefixSide::books(const CachedDataset& dataset, const std::string& store) {
  const std::int64_t from_us = clock_.steady_us();
  events_.happened("ASYNC_FLUSH_START", dataset.info);
  OwnerFlush::Books books;
  books.open = [this](Communicator& alone) { return check_before_flush(alone); };
  books.check_rights = [this] { return owner_.site().keeper->check_rights(is_itself_); };
  books.close = [this, from_us, store, info = dataset.info, label = dataset.label()](
                    Communicator& alone, const FlushAccount& account) {
    const double seconds = seconds_since(from_us);
    keep_books(alone, info, account);
    (void)log_flush(not_waited_for, info, store, account, seconds);
    log_copy(label, account, seconds, ", while the program went on");
    retention_.keep_to_window(alone, owner_.site());
  };
  return books;
}

Status PrefixSide::flush_parts(Communicator& comm, const DatasetInfo& dataset,
                               const std::string& store, const std::vector<CachedPart>& cached,
                               const ReadRecord& read, std::int64_t end_us) {
  events_.happened("FLUSH_START", dataset);
  const std::int64_t from_us = clock_.steady_us();
  const auto account = cairn::flush_parts(comm, for_copies(owner_.site(), end_us, false), dataset,
                                          cached, read, settings_.job_id);
  Status flushed = log_flush(waited_for, dataset, store, account, seconds_since(from_us));
  if (account) marks_.take(comm, owner_.site(), dataset, account->replaced);
  if (flushed) book_.carry_over(owner_.site().keeper, dataset);
  save_listing(comm);
  owner_.announce(comm);
  return flushed;
}

void PrefixSide::save_listing(Communicator& comm) {
  const Status listed =
      on_keeper(comm, owner_.site(), [](Keeper& keeper) { return keeper.save_listing(); });
  if (!listed) log_.warning("{}", listed.error().text);
}

// --- what a restart may take ---

std::string PrefixSide::report_passed_over(RestartFacts facts, const std::set<Uuid>& tried,
                                           const Uuid& offered, bool is_reason_known) {
  const Keeper* keeper = owner_.site().keeper;
  if (keeper == nullptr || std::exchange(passed_over_for_, offered) == offered) return "";
  const PassedOver found = passed_over(facts, settings_, tried, offered, is_reason_known);
  for (const std::string& warning : found.warnings) log_.warning("{}", warning);
  if (!found.newest.empty() || offered != Uuid{} || is_reason_known) return found.newest;
  return scr_.why_useless(owner_.site());
}

void PrefixSide::add_facts(RestartFacts& facts) {
  facts.trouble = owner_.trouble();
  const Keeper* keeper = owner_.site().keeper;
  if (keeper == nullptr) return;
  facts.listing = keeper->known().listing;
  facts.unread = keeper->known().unread;
  facts.current = keeper->known().current();
  facts.cached_attempts = keeper->known().attempts;
  facts.damaged = keeper->known().damaged;
  facts.scr = scr_.facts(owner_.site());
}

/// Cairn knows more of what a restart would take then.
Status PrefixSide::import_from_scr(Communicator& comm, const Uuid& dataset) {
  CAIRN_TRY(scr_.import(comm, owner_.site(), dataset));
  owner_.note_news();
  save_listing(comm);
  owner_.announce(comm);
  return {};
}

std::optional<DatasetRecord> PrefixSide::listed(Communicator& comm, const Uuid& uuid) {
  const Keeper* keeper = owner_.site().keeper;
  return share(comm, keeper != nullptr ? find_in(keeper->known().listing, uuid) : nullptr);
}

std::optional<DatasetRecord> PrefixSide::newest_sound(Communicator& comm) {
  const DatasetRecord* newest = nullptr;
  if (const Keeper* keeper = owner_.site().keeper)
    for (const DatasetRecord& record : keeper->known().listing)
      if (newest == nullptr && record.info.is_checkpoint() &&
          may_restart_from(state_of_files(record)))
        newest = &record;
  return share(comm, newest);
}

// --- what is known there of what the caches have ---

namespace {

/// After a look that could not see what was dropped: a dataset that is nowhere else may be dropped,
/// so what was known of it holds.
PrefixState after_partial_look(PrefixState known, PrefixState found) {
  if (found == PrefixState::absent) return known;
  const bool may_be_dropped = found == PrefixState::held_back && is_flushed(known);
  return may_be_dropped ? PrefixState::quarantined : found;
}

}  // namespace

Result<bool> PrefixSide::look_up(Communicator& comm, std::vector<CachedDataset>& datasets) {
  if (!owner_.take_news()) return false;
  if (datasets.empty()) return true;
  Blob states(datasets.size());
  const Status looked_up =
      agree(comm, owner_.site().keeper != nullptr ? read_states(datasets, states) : Status{});
  if (!looked_up) owner_.note_news();  // the next call looks again
  comm.bcast(states, 0);
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    const auto found = static_cast<PrefixState>(states[i]);
    PrefixState& there = datasets[i].there;
    there = looked_up ? found : after_partial_look(there, found);
  }
  return looked_up.map([] { return true; });
}

/// On rank 0. Also where it is not known what was dropped, of all others.
Status PrefixSide::read_states(const std::vector<CachedDataset>& datasets, Blob& states) {
  Keeper& keeper = *owner_.site().keeper;
  const auto read = read_dropped(files_, owner_.site().folder);
  const Dropped dropped = read.value_or(Dropped{});
  for (std::size_t i = 0; i < datasets.size(); ++i)
    states[i] = static_cast<std::byte>(
        state_in_prefix(datasets[i].info.uuid, keeper.known().listing, keeper.known().unread,
                        dropped, keeper.known().attempts, keeper.known().deleted));
  std::set<Uuid> cached;
  for (const CachedDataset& dataset : datasets) cached.insert(dataset.info.uuid);
  book_.forget_all_but(keeper, cached);
  if (read) return {};
  return fail(
      read.error().code,
      "the list of dropped datasets in {} is unknown, so they may reappear from the caches: {}",
      settings_.prefix, read.error().text);
}

void PrefixSide::forget_deleted(const std::vector<CachedDataset>& left) {
  Keeper* keeper = owner_.site().keeper;
  if (keeper == nullptr) return;
  Listing kept = keeper->known().deleted;
  std::erase_if(kept, [&](const DatasetRecord& record) {
    const auto is_it = [&](const CachedDataset& dataset) {
      return dataset.info.uuid == record.info.uuid && dataset.there == PrefixState::deleted;
    };
    return record.job_id == settings_.job_id && std::none_of(left.begin(), left.end(), is_it) &&
           !is_saved(files_, owner_.site().folder, record.info).value_or(true);
  });
  if (kept == keeper->known().deleted) return;
  const Status kept_well = keeper->set_deleted(std::move(kept));
  if (!kept_well) log_.warning("{}", kept_well.error().text);
}

// --- by name ---

Status PrefixSide::check_unread(Communicator& comm, UnreadMatters what,
                                const UnreadSubject& subject) {
  return on_keeper(comm, owner_.site(), [&](const Keeper& keeper) {
    return cairn::check_unread(what, keeper.known().unread, subject);
  });
}

/// The newest of that name.
Result<DatasetRecord> PrefixSide::share_record(Communicator& comm, const std::string& call,
                                               const std::string& name) {
  const Keeper* keeper = owner_.site().keeper;
  const auto known =
      share(comm, keeper != nullptr ? find_named(keeper->known().listing, name) : nullptr);
  CAIRN_TRY(check_unread(comm, known ? UnreadMatters::choose : UnreadMatters::find,
                         {known ? known->info.uuid : Uuid{}, name, settings_.prefix}));
  if (known) return *known;
  return fail(Code::not_found, "{}: there is no dataset {} in {}", call, name, settings_.prefix);
}

namespace {

/// Outputs stay, as they do in the caches.
Status drop_newer(Keeper& keeper, const Uuid& than) {
  const Listing listing = keeper.known().listing;
  for (const DatasetRecord& record : listing)
    if (than < record.info.uuid && record.info.is_checkpoint() && !record.info.is_output())
      CAIRN_TRY(keeper.drop(record.info));
  return keeper.save_listing();
}

}  // namespace

Result<DatasetInfo> PrefixSide::current(Communicator& comm, const std::string& name) {
  CAIRN_TRY(owner_.look_again(comm));
  if (owner_.is_owned()) CAIRN_TRY(scr_.import_named(comm, owner_.site(), name).map([](bool) {}));
  CAIRN_ASSIGN(const DatasetRecord record, share_record(comm, "SCR_Current", name));
  if (settings_.drop_after_current) give_names_before_drop(comm);
  const Status made = on_keeper(comm, owner_.site(), [&](Keeper& keeper) -> Status {
    CAIRN_TRY(choose_current(owner_.site(), keeper, record.info));
    if (!settings_.drop_after_current) return {};
    CAIRN_TRY(scr_.drop_newer(owner_.site(), record.info.uuid));
    return drop_newer(keeper, record.info.uuid);
  });
  owner_.announce(comm);
  CAIRN_TRY(made);
  return record.info;
}

Status PrefixSide::drop(Communicator& comm, const std::string& name) {
  CAIRN_TRY(owner_.look_again(comm));
  CAIRN_ASSIGN(const bool is_of_scr, owner_.is_owned() ? scr_.drop_named(comm, owner_.site(), name)
                                                       : Result<bool>(false));
  if (is_of_scr) return {};
  CAIRN_ASSIGN(const DatasetRecord record, share_record(comm, "SCR_Drop", name));
  give_names_before_drop(comm);
  Status dropped = retention_.drop(comm, owner_.site(), record);
  owner_.announce(comm);
  return dropped;
}

/// The files of what is dropped stay: under names by which a user can find them.
void PrefixSide::give_names_before_drop(Communicator& comm) {
  if (const Status settled = owner_.settle_older(comm); !settled)
    log_.warning("some files in {} may keep their temporary names: {}", settings_.prefix,
                 settled.error().text);
}

Status PrefixSide::check_removal(Communicator& comm, const std::string& name) {
  CAIRN_TRY(owner_.look_again(comm));
  const auto newest = share_record(comm, "SCR_Delete", name);
  if (!newest)
    return newest.error().code == Code::not_found ? Status{} : tl::unexpected(newest.error());
  return on_keeper(comm, owner_.site(), [&](const Keeper& keeper) -> Status {
    for (const DatasetRecord& record : keeper.known().listing)
      if (record.info.name == name) CAIRN_TRY(retention_.check_removal(keeper, record));
    return {};
  });
}

/// All that have the name.
Status PrefixSide::remove(Communicator& comm, const std::string& name) {
  CAIRN_TRY(owner_.look_again(comm));
  if (owner_.is_owned()) CAIRN_TRY(scr_.import_to_delete(comm, owner_.site(), name));
  CAIRN_TRY(on_keeper(comm, owner_.site(),
                      [&](Keeper& keeper) { return saved_.remove(owner_.site(), keeper, name); }));
  auto record = share_record(comm, "SCR_Delete", name);
  if (!record) return tl::unexpected(record.error());
  Status removed;
  for (; removed && record; record = share_record(comm, "SCR_Delete", name)) {
    removed = retention_.remove(comm, owner_.site(), *record);
    // SCR may have left an older dataset of this name, which the deleted one has hidden.
    if (removed && owner_.is_owned()) removed = scr_.import_to_delete(comm, owner_.site(), name);
  }
  owner_.announce(comm);
  const bool all = record || record.error().code == Code::not_found;
  return all ? removed : tl::unexpected(record.error());
}

}  // namespace cairn
