// How a PrefixSide comes to own its directory, gets to know what is there, and gives it up.

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/units.hpp"
#include "prefix/fetch_order.hpp"
#include "prefix/tidy.hpp"
#include "session/is_prefix_used.hpp"
#include "session/prefix_side.hpp"

namespace cairn {

void PrefixSide::look_for_directory() {
  if (!settings_.flush && !settings_.fetch) return;
  std::int64_t missing = comm_.rank() == 0 && is_no_directory(files_, settings_.prefix) ? 1 : 0;
  comm_.bcast(mutable_bytes_of(missing), 0);
  is_missing_ = missing != 0;
  if (is_missing_)
    tell(Severity::warning,
         "the prefix directory {} {} ({}). SCR_Route_file fails for files outside it, "
         "so a program that names files elsewhere saves NO CHECKPOINT; other files stay in the "
         "caches. Create the directory, or correct SCR_PREFIX",
         settings_.prefix, files_.info(settings_.prefix) ? "is not a directory" : "does not exist",
         settings_.prefix_origin);
}

Status PrefixSide::open(const Placement& placement) {
  site_.ranks_on_node = static_cast<int>(placement.beside(comm_.rank()).size());
  Status opened = own_if_there();
  if (opened && owned_ && settings_.prefix_purge) return purge();
  if (opened || opened.error().code == Code::busy || settings_.prefix_purge) return opened;
  trouble_ = opened.error().text;
  tell(Severity::warning, "cannot fetch or flush now: {}", trouble_);
  return {};
}

bool PrefixSide::open_again() {
  if (owned_ && trouble_.empty()) return read_again();
  const bool was_away = !trouble_.empty();
  const Status opened = own_if_there();
  trouble_ = opened ? "" : opened.error().text;
  return owned_ || (was_away && opened);
}

bool PrefixSide::read_again() {
  const std::size_t told = keeper_ ? keeper_->damaged().size() : 0;
  std::int64_t known = keeper_ && keeper_->read_again() ? 1 : 0;
  tell_of_damaged(told);
  comm_.bcast(mutable_bytes_of(known), 0);
  if (known == 0) return false;
  has_news_ = true;
  announce_extremes();
  announce_first();
  return true;
}

/// But for the first, which were told before.
void PrefixSide::tell_of_damaged(std::size_t told) const {
  for (std::size_t i = told; keeper_ && i < keeper_->damaged().size(); ++i)
    tell(Severity::warning, "a dataset in the prefix directory cannot be used: {}",
         keeper_->damaged()[i]);
}

/// Where neither Cairn nor SCR ever copied anything nothing is made either.
Status PrefixSide::own_if_there() {
  if (!settings_.flush && !settings_.fetch) return {};
  std::int64_t there = 0;
  if (comm_.rank() == 0) {
    there =
        is_prefix_used(files_, site_.folder.root()) || may_have_scr_index(files_, settings_.prefix)
            ? 1
            : 0;
  }
  comm_.bcast(mutable_bytes_of(there), 0);
  if (there == 0) return {};
  CAIRN_TRY(own());
  announce_first();
  return {};
}

/// That it takes a while, and why.
void PrefixSide::tell_rival(const OwnerRecord& rival) const {
  tell(Severity::info,
       "{} was last used by job {} of {} on {}, which did not record its end: waiting up to {} for "
       "a sign of life before this run takes over",
       settings_.prefix, rival.job_id, rival.user, rival.host,
       format_seconds(static_cast<double>(silence_us) * 1e-6));
}

void PrefixSide::introduce_myself() {
  me_.run = {clock_.now_us(), static_cast<std::int64_t>(clock_.random() >> 1)};
  me_.job_id = settings_.job_id;
  me_.user = settings_.user;
  me_.host = settings_.node_name;
  me_.process = static_cast<std::uint64_t>(::getpid());
  me_.started_us = clock_.now_us();
}

/// On rank 0. A rival that has just been seen alive is not watched for signs of life again before
/// it could have died since.
Status PrefixSide::take_keeper() {
  if (me_.run == Uuid{}) introduce_myself();
  const auto owner = read_owner(files_, site_.folder);
  const bool has_rival = owner && *owner && is_rival(**owner, me_);
  if (has_rival && clock_.steady_us() < ask_again_us_) return refusal_;
  if (has_rival && refusal_) tell_rival(**owner);
  auto keeper = Keeper::take_over(files_, clock_, site_.folder, me_,
                                  was_closed_ ? Claim::again : Claim::polite);
  refusal_ = keeper ? Status{} : Status(tl::unexpected(keeper.error()));
  if (keeper)
    keeper_.emplace(*std::move(keeper));
  else if (keeper.error().code == Code::busy)
    ask_again_us_ = clock_.steady_us() + silence_us;
  return refusal_;
}

Status PrefixSide::own() {
  if (owned_) return {};
  Status taken = comm_.rank() == 0 ? take_keeper() : Status{};
  CAIRN_TRY(agree(comm_, std::move(taken)));
  owned_ = true;
  is_missing_ = false;
  has_news_ = true;
  if (keeper_) {
    site_.keeper = &*keeper_;
    heartbeat_ = background_.repeat(beat_period_us, keeper_->heartbeat());
    if (!heartbeat_)
      tell(Severity::warning,
           "cannot start the thread that gives signs of life in {}: another job that uses this "
           "directory could take it over; raise the limit of processes (ulimit -u)",
           settings_.prefix);
    site_.epoch = keeper_->epoch();
    tell_of_damaged(0);
    for (const UnreadDataset& unread : keeper_->unread())
      tell(Severity::warning, "a dataset in the prefix directory cannot be read now: {}",
           unread.why);
    for (const std::string& damage : {keeper_->current_damage(), keeper_->deleted_damage()})
      if (!damage.empty()) tell(Severity::warning, "{}", damage);
    scr_.look(files_);
  }
  comm_.bcast(mutable_bytes_of(site_.epoch), 0);
  const std::vector<CachedPart> cached = cached_();
  tell_of_half_done(tidy_up(&cached));
  announce_extremes();
  return {};
}

/// Where another one has taken over, this run has no rights any more; it may ask for new ones.
void PrefixSide::let_go_if_closed() {
  if (!owned_) return;
  std::int64_t closed = keeper_ && keeper_->is_closed() ? 1 : 0;
  comm_.bcast(mutable_bytes_of(closed), 0);
  if (closed == 0) return;
  tell(Severity::warning,
       "another job or command has taken over {}: this run must become the owner again before it "
       "can copy anything there",
       settings_.prefix);
  heartbeat_.reset();
  site_.keeper = nullptr;
  keeper_.reset();
  owned_ = false;
  has_news_ = false;  // nothing is known of it any more, until it is owned again
  was_closed_ = true;
}

bool PrefixSide::has_news() {
  let_go_if_closed();
  return has_news_ || (was_closed_ && !owned_);
}

/// What was this run's, or would have been, is to be so; and what could not be read may be read
/// now.
Status PrefixSide::look_again() {
  let_go_if_closed();
  if (was_closed_) CAIRN_TRY(own());
  if (!trouble_.empty()) CAIRN_TRY(own_if_there());
  read_again();
  if (keeper_) scr_.look(files_);
  return {};
}

Status PrefixSide::claim() {
  let_go_if_closed();
  CAIRN_TRY(own());
  read_again();
  CAIRN_TRY(settle_older());
  return on_keeper(comm_, site_,
                   [](const Keeper& keeper) { return refuse_unsettled(keeper.unread()); });
}

/// Files that still have their staged names must not be given their own ones after this dataset's,
/// which may have the same. What else cannot be ended keeps nothing from being copied.
Status PrefixSide::settle_older() {
  if (!is_unsettled()) return {};
  Status tidied = tidy_up(nullptr);
  if (tidied || is_unsettled()) return tidied;
  tell_of_half_done(tidied);
  return {};
}

/// On all ranks.
bool PrefixSide::is_unsettled() const {
  std::int64_t unsettled = keeper_ && has_unsettled(keeper_->listing()) ? 1 : 0;
  comm_.bcast(mutable_bytes_of(unsettled), 0);
  return unsettled != 0;
}

void PrefixSide::tell_of_half_done(const Status& tidied) const {
  if (!tidied)
    tell(Severity::warning,
         "the leftovers of an earlier run in the prefix directory could not be finished or "
         "removed: {}",
         tidied.error().text);
}

Status PrefixSide::tidy_up(const std::vector<CachedPart>* cached) {
  Tidied found;
  Status tidied = tidy(comm_, site_, cached != nullptr ? *cached : std::vector<CachedPart>{},
                       cached != nullptr ? Unfinished::removed : Unfinished::left, &found);
  unmarked_.insert(found.unmarked.begin(), found.unmarked.end());
  for (const std::string& folder : found.damaged)
    tell(Severity::warning, "{}", remedy_for_damaged(folder));
  for (const auto* lines : {&found.given_up, &found.kept})
    for (const std::string& line : *lines) tell(Severity::warning, "{}", line);
  for (const DatasetRecord& record : found.published) {
    events_.happened("FLUSH_SUCCESS", record.info, {}, "begun by an earlier run");
    events_.moved("FLUSH_SYNC", "", settings_.prefix, record.info, {}, record.bytes, record.files);
    carry_attempts_over(record.info);
    tell(Severity::info, "{} is in {}: the flush that an earlier run began is complete",
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
  if (keeper_)
    for (const UnreadDataset& unread : keeper_->unread())
      highest[2] = std::max(highest[2], unread.uuid.time_us);
  if (keeper_) {
    highest[0] = std::max(highest[0], static_cast<std::int64_t>(scr_.last_number()));
    highest[2] = std::max(highest[2], scr_.newest_us());
  }
  comm_.bcast(std::as_writable_bytes(std::span(highest)), 0);
  last_number_ = static_cast<std::uint64_t>(highest[0]);
  last_checkpoint_ = static_cast<std::uint64_t>(highest[1]);
  newest_us_ = std::max(newest_us_, highest[2]);
}

namespace {

/// What is known of a dataset of the caches, for all ranks.
constexpr std::byte known_flushed{1};
constexpr std::byte known_quarantined{2};
constexpr std::byte known_deleted{4};

}  // namespace

Status PrefixSide::mark_flushed(std::vector<CachedDataset>& datasets) {
  if (!std::exchange(has_news_, false) || datasets.empty()) return {};
  Blob known(datasets.size());
  const Status looked_up = agree(comm_, keeper_ ? look_up(datasets, known) : Status{});
  if (!looked_up) has_news_ = true;  // the next call looks again
  comm_.bcast(known, 0);
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    const bool flushed = (known[i] & known_flushed) != std::byte{};
    // Another one may have removed it since.
    if (flushed || (looked_up && !datasets[i].in_prefix())) datasets[i].flushed = flushed;
    if ((known[i] & known_quarantined) != std::byte{}) datasets[i].quarantined = true;
    if ((known[i] & known_deleted) != std::byte{}) datasets[i].deleted = true;
  }
  return looked_up;
}

/// On rank 0. Also where it is not known what was dropped, of all others.
Status PrefixSide::look_up(const std::vector<CachedDataset>& datasets, Blob& known) {
  const auto read = read_dropped(files_, site_.folder);
  const Dropped dropped = read.value_or(Dropped{});
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    const KnownInPrefix there = known_in_prefix(datasets[i].info.uuid, keeper_->listing(), dropped,
                                                keeper_->attempts(), keeper_->deleted());
    if (there.flushed) known[i] |= known_flushed;
    if (there.quarantined) known[i] |= known_quarantined;
    if (there.deleted) known[i] |= known_deleted;
  }
  forget_attempts(datasets);
  if (read) return {};
  return fail(
      read.error().code,
      "the list of dropped datasets in {} is unknown, so they may reappear from the caches: {}",
      settings_.prefix, read.error().text);
}

void PrefixSide::forget_deleted(const std::vector<CachedDataset>& left) {
  if (!keeper_) return;
  Listing kept = keeper_->deleted();
  std::erase_if(kept, [&](const DatasetRecord& record) {
    const auto is_it = [&](const CachedDataset& dataset) {
      return dataset.info.uuid == record.info.uuid && dataset.deleted;
    };
    return record.job_id == settings_.job_id && std::none_of(left.begin(), left.end(), is_it) &&
           !is_saved(files_, site_.folder, record.info).value_or(true);
  });
  if (kept == keeper_->deleted()) return;
  const Status kept_well = keeper_->set_deleted(std::move(kept));
  if (!kept_well) tell(Severity::warning, "{}", kept_well.error().text);
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

/// On rank 0: of those whose files were found, or of the others.
const DatasetRecord* PrefixSide::oldest(bool found) const {
  if (!keeper_) return nullptr;
  const Listing& listing = keeper_->listing();
  const auto last = std::find_if(listing.rbegin(), listing.rend(), [&](const auto& record) {
    return record.info.was_found() == found;
  });
  return last == listing.rend() ? nullptr : &*last;
}

/// SCR_PREFIX_PURGE: one after the other, as SCR_Delete does; files that Cairn did not write stay.
Status PrefixSide::purge() {
  CAIRN_TRY(refuse_unread("what SCR_PREFIX_PURGE=1 is to delete"));
  CAIRN_TRY(purge_saved());
  CAIRN_TRY(scr_.pass_over(site_));
  std::vector<DatasetRecord>
      goes;  // all are out before any file goes: they keep none of each other
  while (const auto record = share(oldest(false))) {
    CAIRN_TRY(take_out(*record));
    goes.push_back(*record);
  }
  std::vector<std::string> deleted;
  for (const DatasetRecord& record : goes) {
    CAIRN_TRY(remove_files_of(record));
    deleted.push_back(record.info.name);
  }
  CAIRN_TRY(note_purged(goes));
  std::vector<std::string> dropped;
  while (const auto record = share(oldest(true))) {
    CAIRN_TRY(drop_dataset(*record));
    dropped.push_back(record->info.name);
  }
  const auto tell_of = [&](const std::vector<std::string>& names, std::string_view what) {
    tell(Severity::info, "SCR_PREFIX_PURGE=1: {} {} {} {}{}{}", names.size(),
         names.size() == 1 ? "dataset is" : "datasets are", what, settings_.prefix,
         names.empty() ? "" : ": ", fmt::join(names, ", "));
  };
  tell_of(deleted, "deleted from");
  if (!dropped.empty())
    tell_of(dropped, "dropped (Cairn did not write their files, which stay) from");
  announce_first();
  return {};
}

/// What the caches still have stays there, and is not to be copied again.
Status PrefixSide::note_purged(const std::vector<DatasetRecord>& purged) {
  std::vector<std::int64_t> cached(purged.size());
  for (const CachedPart& part : cached_())
    for (std::size_t i = 0; i < purged.size(); ++i)
      if (purged[i].info.uuid == part.dataset) cached[i] = 1;
  if (cached.empty()) return {};
  comm_.allreduce(cached, Reduce::max);
  return on_keeper(comm_, site_, [&](Keeper& keeper) -> Status {
    for (std::size_t i = 0; i < purged.size(); ++i)
      if (cached[i] != 0) CAIRN_TRY(keeper.note_purged(purged[i]));
    return {};
  });
}

void PrefixSide::close() {
  if (!keeper_) return;
  heartbeat_.reset();
  // Whatever has happened, the next job need not wait.
  for (const Status& closed : {keeper_->save_listing(), keeper_->resign()})
    if (!closed) tell(Severity::warning, "{}", closed.error().text);
}

}  // namespace cairn
