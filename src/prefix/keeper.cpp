#include "prefix/keeper.hpp"

#include <algorithm>

#include "base/is_absent.hpp"
#include "config/settings.hpp"
#include "files/modes.hpp"
#include "prefix/choose_current.hpp"
#include "prefix/own_names.hpp"
#include "prefix/scr_index.hpp"
#include "prefix/unfinished.hpp"
#include "prefix/unread.hpp"

namespace cairn {
namespace {

/// Held while the owner changes. Some parallel file systems have no locks; then the epochs alone
/// must do, which keep two owners from publishing, but not from both believing to be the only one.
std::unique_ptr<FileLock> lock_owner(Files& files, Clock& clock, const PrefixFolder& folder) {
  constexpr int tries = 50;
  for (int i = 0; i < tries; ++i) {
    auto lock = files.lock(folder.owner_lock());
    if (lock) return *std::move(lock);
    if (lock.error().code != Code::busy) break;
    clock.sleep_us(100'000);
  }
  return nullptr;
}

bool is_same_job(const OwnerRecord& a, const OwnerRecord& b) {
  return a.job_id == b.job_id && a.user == b.user && (a.job_id != unnamed_job || a.host == b.host);
}

}  // namespace

/// A job that is started again finds what its dead run has left; that must not stop it.
bool is_rival(const OwnerRecord& owner, const OwnerRecord& me) {
  return owner.beat_us != 0 && !is_same_job(owner, me);
}

// --- taking over ---

Keeper::Keeper(Files& files, Clock& clock, PrefixFolder folder, OwnerRecord me)
    : files_(&files), clock_(&clock), folder_(std::move(folder)), me_(std::move(me)) {}

Status wait_for_rivals(Files& files, Clock& clock, const PrefixFolder& folder,
                       const OwnerRecord& me, Claim claim) {
  CAIRN_ASSIGN(const auto first, read_owner(files, folder));
  if (claim == Claim::again && first && first->started_us > me.started_us &&
      is_same_job(*first, me))
    return fail(Code::busy,
                "a later run of job {} has begun on {} (process {}) and now owns {}: end this run",
                first->job_id, first->host, first->process, folder.prefix);
  if (!first || !is_rival(*first, me)) return {};
  constexpr std::int64_t look_us = 500'000;
  for (std::int64_t waited_us = 0; waited_us < silence_us; waited_us += look_us) {
    clock.sleep_us(look_us);
    CAIRN_ASSIGN(const auto now, read_owner(files, folder));
    if (!now || !is_rival(*now, me)) return {};
    if (now->beat_us != first->beat_us || now->epoch != first->epoch)
      return fail(Code::busy,
                  "{} belongs to job {} of {}, which is running on {} (process {}): wait until it "
                  "has ended, or set SCR_PREFIX to another directory",
                  folder.prefix, now->job_id, now->user, now->host, now->process);
  }
  return {};
}

Result<Keeper> Keeper::take_over(Files& files, Clock& clock, PrefixFolder folder, OwnerRecord me,
                                 Claim claim, const Reading& reading) {
  CAIRN_TRY(make_folders(files, folder.datasets(), directory_for_all));
  for (const std::string& above : {folder.root(), folder.prefix})
    CAIRN_TRY(sync_folder_in(files, folder, above));
  Status alone = claim == Claim::forced ? Status(read_owner(files, folder).map([](const auto&) {}))
                                        : wait_for_rivals(files, clock, folder, me, claim);
  // A damaged record of an owner keeps no job out.
  if (!alone && alone.error().code != Code::corrupt) return tl::unexpected(alone.error());
  const auto before = read_owner(files, folder);
  const auto lock = lock_owner(files, clock, folder);
  Keeper keeper(files, clock, std::move(folder), std::move(me));
  while (true) {
    const auto now = read_owner(files, keeper.folder_);
    const bool overtaken = claim != Claim::forced && before && now && *now && *before != *now &&
                           is_rival(**now, keeper.me_);
    if (overtaken)
      return fail(
          Code::busy,
          "job {} of {} has just become the owner of {}: set SCR_PREFIX to another directory",
          (*now)->job_id, (*now)->user, keeper.folder_.prefix);
    CAIRN_ASSIGN(const bool mine, keeper.open_epoch());
    if (mine) break;
  }
  CAIRN_TRY(keeper.become_owner());
  CAIRN_TRY(keeper.read_datasets(reading));
  CAIRN_ASSIGN(keeper.known_.named,
               read_current(files, keeper.folder_, &keeper.known_.current_damage));
  if (reading.anew && !keeper.known_.current_damage.empty()) CAIRN_TRY(keeper.set_current(""));
  // One that cannot be read keeps no job from its work.
  keeper.known_.attempts = read_attempts(files, keeper.folder_).value_or(Listing{});
  CAIRN_ASSIGN(keeper.known_.deleted,
               read_deleted(files, keeper.folder_, &keeper.known_.deleted_damage));
  return keeper;
}

bool KnownContents::has_all() const {
  return damaged.empty() && forbidding(UnreadMatters::list, unread) == nullptr;
}

Status Keeper::read_datasets(const Reading& reading) {
  // An owner may have died between a rename and its sync; what is built on it must not outlive it.
  for (const std::string& folder : {folder_.datasets(), folder_.dropped()})
    if (Status synced = files_->sync_folder(folder); !synced && !is_absent(synced.error()))
      return synced;
  auto copy = reading.anew ? std::nullopt : read_copy(*files_, folder_);
  listing_good_ = copy.has_value();
  if (listing_good_) {
    known_.listing = *std::move(copy);
    return {};
  }
  CAIRN_ASSIGN(known_.listing, read_records(*files_, folder_.datasets(), known_.damaged, reading.io,
                                            &known_.unread));
  // A listing that does not say what the records say is not to be believed any more.
  return known_.has_all() ? Status{} : open_listing();
}

bool Keeper::read_again() {
  const std::size_t before = known_.unread.size();
  for (const UnreadDataset& dataset : std::exchange(known_.unread, {}))
    sort_in(*files_, dataset.folder, read_dataset_record(*files_, dataset.folder), known_.listing,
            known_.damaged, known_.unread);
  return known_.unread.size() < before;
}

/// One that is later than all that have left a trace. False where another, who did not wait for the
/// lock either, has just opened that one: no two owners have one epoch.
Result<bool> Keeper::open_epoch() {
  const auto before = read_owner(*files_, folder_);
  me_.epoch = before && *before ? (*before)->epoch : 0;
  CAIRN_ASSIGN(const auto names, names_in(*files_, folder_.root()));
  for (const char* kind : {"epoch.", "closed."})
    for (const std::uint64_t epoch : numbers_after(kind, names))
      me_.epoch = std::max(me_.epoch, epoch);
  ++me_.epoch;
  return files_->make_new_folder(folder_.epoch(me_.epoch), directory_for_all);
}

Status Keeper::become_owner() {
  CAIRN_TRY(close_earlier());  // first: a sign of life of theirs must not replace the one below
  me_.beat_us = clock_->now_us();
  return place(folder_.owner(), encode(me_));
}

/// No process publishes from these any more. A later one is not this owner's to close: its owner
/// closes this one.
Status Keeper::close_earlier() {
  CAIRN_ASSIGN(const auto names, names_in(*files_, folder_.root()));
  for (const std::uint64_t epoch : numbers_after("epoch.", names))
    if (epoch < me_.epoch) {
      const Status closed = files_->rename(folder_.epoch(epoch), folder_.closed(epoch));
      if (!closed && !is_absent(closed.error())) return closed;  // else another process has
    }
  return files_->sync_folder(folder_.root());
}

void Keeper::look_at_plan(UnfinishedWork& work, std::uint64_t epoch) const {
  const auto read = read_dataset_record(*files_, work.folder);
  if (!read && !is_damage(read.error().code)) {  // it may be a good one
    work.label = work.folder;
    work.unknown = read.error().text;
    return;
  }
  const auto plan = read.value_or(std::nullopt);
  if (!plan || find_in(known_.listing, plan->info.uuid) != nullptr)
    return;  // another way led there
  work.label = plan->label();
  if (const Status known =
          check_unread(UnreadMatters::give_names, known_.unread, {plan->info.uuid});
      !known) {
    work.unknown = known.error().text;
    return;
  }
  const auto unwanted = is_unwanted(*files_, folder_, {*plan, work.folder, epoch}, known_.deleted);
  if (!unwanted) {
    work.unknown = unwanted.error().text;
  } else if (*unwanted) {
    work.given_up = "it has been dropped or deleted";
  } else {
    work.plan = plan;
    work.newer = newer_than(known_.listing, plan->info.uuid);
  }
}

Keeper::UnfinishedWork Keeper::deleted_in(const std::string& folder) const {
  UnfinishedWork work;
  work.folder = folder;
  work.kind = UnfinishedWork::Kind::deleted;
  const auto record = read_dataset_record(*files_, folder).value_or(std::nullopt);
  work.label = record ? record->label() : folder;
  if (record) work.uuid = record->info.uuid;
  return work;
}

Result<std::vector<Keeper::UnfinishedWork>> Keeper::unfinished_work() {
  CAIRN_TRY(make_durable());  // files are about to take their names
  std::vector<UnfinishedWork> found;
  std::vector<UnfinishedWork> staged;
  CAIRN_ASSIGN(const auto names, names_in(*files_, folder_.root()));
  for (const std::uint64_t epoch : numbers_after("closed.", names)) {
    const std::string closed = folder_.closed(epoch);
    CAIRN_ASSIGN(const auto inside, names_in(*files_, closed));
    for (const std::string& name : with_start(inside, "dataset.")) {
      const std::string folder = closed + "/" + name;
      UnfinishedWork& work = staged.emplace_back();
      work.folder = folder;
      work.kind = UnfinishedWork::Kind::staged;
      look_at_plan(work, epoch);
    }
    for (const std::string& name : with_start(inside, "deleted."))
      found.push_back(deleted_in(closed + "/" + name));
  }
  for (auto record = known_.listing.rbegin(); record != known_.listing.rend();
       ++record)  // the oldest first
    if (!record->settled)
      found.push_back({folder_.dataset(record->info),
                       UnfinishedWork::Kind::unsettled,
                       {},
                       *record,
                       {},
                       {},
                       {},
                       {},
                       {}});
  std::sort(staged.begin(), staged.end(), [](const UnfinishedWork& a, const UnfinishedWork& b) {
    return (a.plan ? a.plan->info.uuid : Uuid{}) < (b.plan ? b.plan->info.uuid : Uuid{});
  });
  found.insert(found.end(), staged.begin(), staged.end());
  for (UnfinishedWork& work : found) {
    CAIRN_ASSIGN(const auto inside, names_in(*files_, work.folder));
    work.manifests = numbers_after("manifest.", inside);
    std::sort(work.manifests.begin(), work.manifests.end());
  }
  return found;
}

Status Keeper::remove_closed(const std::vector<std::string>& kept) {
  CAIRN_ASSIGN(const auto names, names_in(*files_, folder_.root()));
  for (const std::uint64_t epoch : numbers_after("closed.", names)) {
    const std::string closed = folder_.closed(epoch);
    CAIRN_ASSIGN(const auto inside, names_in(*files_, closed));
    for (const std::string& name : with_start(inside, DatasetFolder::transit_start)) {
      const std::string dataset = name.substr(DatasetFolder::transit_start.size());
      const auto again = files_->info(folder_.datasets() + "/" + dataset);  // published since
      if (!again) CAIRN_TRY(move_to_dropped(closed + "/" + name));
    }
    const auto stays = [&](const std::string& name) {
      return std::find(kept.begin(), kept.end(), closed + "/" + name) != kept.end();
    };
    for (const std::string& name : inside)
      if (!stays(name)) CAIRN_TRY(remove_all(*files_, closed + "/" + name));
    if (std::none_of(inside.begin(), inside.end(), stays)) CAIRN_TRY(remove_all(*files_, closed));
  }
  return forget_current();  // its owner may have died before that
}

// --- changing ---

/// Which listing a failed change has removed is not certain: another directory may have been at
/// this path.
Status Keeper::under_epoch(Status status) {
  if (!status) listing_opened_ = false;
  return epoch_folder().under_epoch(std::move(status));
}

Status Keeper::place_unsynced(const std::string& path, Bytes content) {
  const std::string prepared = folder_.epoch(me_.epoch) + "/new." + name_of_path(path);
  const auto write = [&]() -> Status {
    CAIRN_ASSIGN(const auto file, files_->create(prepared, 0666));
    CAIRN_TRY(file->write_at(0, content));
    CAIRN_TRY(file->sync());
    return files_->rename(prepared, path);
  };
  return under_epoch(write());
}

Status Keeper::place(const std::string& path, Bytes content) {
  CAIRN_TRY(place_unsynced(path, content));
  return files_->sync_folder(folder_of(path));
}

Status Keeper::open_listing() {
  if (listing_opened_) return {};
  listing_good_ = false;
  CAIRN_TRY(epoch_folder().remove_listing());
  listing_opened_ = true;
  return {};
}

Status Keeper::save_listing() {
  // What could not be read once may be readable the next time, and must not be forgotten.
  if (listing_good_ || !known_.has_all()) return {};
  CAIRN_TRY(make_durable());
  listing_opened_ = false;  // also where it gets to its place, and only cannot be synced there
  CAIRN_TRY(place(folder_.listing(), encode(known_.listing)));
  listing_good_ = true;
  return {};
}

DatasetRecord* Keeper::find(const Uuid& uuid) {
  const auto found = std::find_if(known_.listing.begin(), known_.listing.end(),
                                  [&](const auto& record) { return record.info.uuid == uuid; });
  return found == known_.listing.end() ? nullptr : &*found;
}

/// One that is there, though its record could not be read, may not be settled yet: its files lie
/// under the very names that these would be staged by.
Status Keeper::refuse_unknown(const DatasetInfo& dataset) {
  if (find(dataset.uuid) != nullptr) return {};
  const std::string published = folder_.dataset(dataset);
  const auto there = files_->info(published);
  if (!there && is_absent(there.error())) return {};
  return fail(Code::io,
              "dataset {} is not copied: it exists in {}, but its record could not be read when "
              "this run began",
              dataset.number, published);
}

/// The files of one that is older would get their names after those of this one, which may have the
/// same.
Status Keeper::refuse_beside_unsettled(const DatasetInfo& dataset) const {
  for (const DatasetRecord& record : known_.listing)
    if (!record.settled && record.info.uuid < dataset.uuid)
      return fail(Code::io,
                  "dataset {} is not copied yet: files of {} in {} still have temporary names, and "
                  "must be renamed first",
                  dataset.number, record.label(), folder_.prefix);
  return {};
}

Status Keeper::begin(const DatasetInfo& dataset) {
  CAIRN_TRY(check_unread(UnreadMatters::give_names, known_.unread, {dataset.uuid}));
  CAIRN_TRY(refuse_beside_unsettled(dataset));
  CAIRN_TRY(refuse_unknown(dataset));
  return epoch_folder().begin(dataset);
}

Status Keeper::publish(const DatasetRecord& record, EpochFolder::Seen seen) {
  CAIRN_TRY(open_listing());
  bool is_there = false;
  const bool replaces = find(record.info.uuid) != nullptr;
  Status durable = epoch_folder().publish(record.info, replaces, seen, is_there);
  if (!is_there) return under_epoch(std::move(durable));
  known_.is_durable = durable.has_value();
  take_in(record);
  return durable;
}

/// It is there, in place of the one that stands aside.
void Keeper::take_in(const DatasetRecord& record) {
  std::erase_if(known_.listing,
                [&](const DatasetRecord& old) { return old.info.uuid == record.info.uuid; });
  insert(known_.listing, record);
  // Else the next owner finds it.
  (void)remove_all(*files_, folder_.in_transit(me_.epoch, record.info));
}

/// Nothing may be built on what a power failure would take away.
Status Keeper::make_durable() {
  if (known_.is_durable) return {};
  CAIRN_TRY(files_->sync_folder(folder_.datasets()));
  known_.is_durable = true;
  return {};
}

Status Keeper::update(const DatasetRecord& record) {
  DatasetRecord* known = find(record.info.uuid);
  if (known == nullptr)
    return fail(Code::not_found, "{} is not in {}", record.label(), folder_.prefix);
  CAIRN_TRY(open_listing());
  const std::string dataset = folder_.dataset(record.info);
  CAIRN_TRY(place_unsynced(DatasetFolder::record(dataset), encode(record)));
  *known = record;  // all who look see it; the next update must not take it back
  return files_->sync_folder(dataset);
}

Status Keeper::mark_settled(const Uuid& dataset) {
  const DatasetRecord* known = find(dataset);
  if (known == nullptr)
    return fail(Code::not_found, "dataset {} is not in {}", text_of(dataset), folder_.prefix);
  DatasetRecord record = *known;
  const auto newest = std::find_if(known_.listing.begin(), known_.listing.end(),
                                   [](const auto& listed) { return listed.info.is_checkpoint(); });
  const bool is_newest = newest != known_.listing.end() && newest->info.uuid == record.info.uuid;
  if (is_newest && !is_passed_over(*files_, folder_.dataset(record.info)))
    CAIRN_TRY(set_current(record.info.name));
  CAIRN_TRY(remove_all(*files_, DatasetFolder::markers(folder_.dataset(record.info))));
  record.settled = true;
  return update(record);
}

Status Keeper::set_attempts(Listing attempts) {
  CAIRN_TRY(place(folder_.attempts(), encode(attempts)));
  known_.attempts = std::move(attempts);
  return {};
}

Status Keeper::set_deleted(Listing deleted) {
  CAIRN_TRY(place(folder_.deleted_list(), encode(deleted)));
  known_.deleted = std::move(deleted);
  return {};
}

Status Keeper::set_current(const std::string& name) {
  CAIRN_TRY(place(folder_.current(), encode_current(name)));
  known_.named = name;
  return {};
}

/// The dataset's folder has been moved from where datasets are.
Status Keeper::forget(const DatasetInfo& dataset) {
  std::erase_if(known_.listing,
                [&](const DatasetRecord& record) { return record.info.uuid == dataset.uuid; });
  CAIRN_TRY(files_->sync_folder(folder_.datasets()));
  return forget_current();
}

/// Unless it is there. What cannot be read may be it.
Status Keeper::forget_current() {
  const bool is_there =
      std::any_of(known_.listing.begin(), known_.listing.end(),
                  [&](const DatasetRecord& record) { return record.info.name == known_.named; });
  return known_.named.empty() || is_there || !known_.has_all() ? Status{} : set_current("");
}

Status Keeper::take_out(const DatasetInfo& dataset) {
  CAIRN_TRY(open_listing());
  const std::string removed = folder_.deleted(me_.epoch, dataset);
  const bool listed = find(dataset.uuid) != nullptr;
  CAIRN_TRY(under_epoch(
      files_->rename(listed ? folder_.dataset(dataset) : folder_.dropped(dataset), removed)));
  if (!listed) CAIRN_TRY(files_->sync_folder(folder_.dropped()));
  return forget(dataset);
}

/// The note comes first, so that a crash leaves what is there or what no run imports. Only that of
/// a dropped one comes after, as it takes its place.
Status Keeper::take_out_for_good(const DatasetRecord& record) {
  const bool has_note = record.info.was_found() && may_have_scr_index(*files_, folder_.prefix);
  const bool is_listed = find(record.info.uuid) != nullptr;
  if (has_note && is_listed) CAIRN_TRY(note_purged(record));
  CAIRN_TRY(take_out(record.info));
  return has_note && !is_listed ? note_purged(record) : Status{};
}

/// `from` is in transit.
Status Keeper::move_to_dropped(const std::string& from) {
  CAIRN_TRY(files_->make_folder(folder_.dropped(), directory_for_all));
  const std::string name = name_of_path(from).substr(DatasetFolder::transit_start.size());
  const std::string to = folder_.dropped() + "/" + name;
  CAIRN_TRY(remove_all(*files_, to));  // of an earlier time: it was flushed again since
  CAIRN_TRY(under_epoch(files_->rename(from, to)));
  return files_->sync_folder(folder_.dropped());
}

/// Two renames: the first, which is under the rights of the epoch, decides. What lies between them
/// when the owner dies is found by the next one.
Status Keeper::drop(const DatasetInfo& dataset) {
  CAIRN_TRY(open_listing());
  const std::string transit = folder_.in_transit(me_.epoch, dataset);
  CAIRN_TRY(under_epoch(files_->rename(folder_.dataset(dataset), transit)));
  CAIRN_TRY(forget(dataset));
  return move_to_dropped(transit);
}

Status Keeper::note_purged(const DatasetRecord& record) {
  const std::string transit = folder_.in_transit(me_.epoch, record.info);
  CAIRN_TRY(remove_all(*files_, transit));
  CAIRN_TRY(files_->make_folder(transit, directory_for_all));
  CAIRN_TRY(write_file_atomically(*files_, DatasetFolder::record(transit), encode(record), true));
  CAIRN_TRY(files_->sync_folder(transit));
  return move_to_dropped(transit);
}

/// The other way round; here the second decides.
Status Keeper::put_back(const DatasetRecord& record) {
  if (find(record.info.uuid) != nullptr)
    return fail(Code::bad_argument, "{} is in {} already", record.label(), folder_.prefix);
  CAIRN_TRY(open_listing());
  const std::string transit = folder_.in_transit(me_.epoch, record.info);
  CAIRN_TRY(under_epoch(files_->rename(folder_.dropped(record.info), transit)));
  CAIRN_TRY(under_epoch(files_->rename(transit, folder_.dataset(record.info))));
  insert(known_.listing, record);
  CAIRN_TRY(files_->sync_folder(folder_.datasets()));
  return files_->sync_folder(folder_.dropped());
}

std::function<void()> Keeper::heartbeat() const {
  return [files = files_, clock = clock_, folder = folder_, me = me_]() mutable {
    if (is_closed(*files, folder, me)) return;
    me.beat_us = clock->now_us();
    const std::string prepared = folder.epoch(me.epoch) + "/beat";
    const auto beat = [&]() -> Status {
      CAIRN_ASSIGN(const auto file, files->create(prepared, 0666));
      CAIRN_TRY(file->write_at(0, encode(me)));
      return files->rename(prepared, folder.owner());
    };
    (void)beat();
  };
}

Status Keeper::resign() {
  me_.beat_us = 0;
  return place(folder_.owner(), encode(me_));
}

}  // namespace cairn
