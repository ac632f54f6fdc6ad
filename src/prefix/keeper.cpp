#include "prefix/keeper.hpp"

#include <algorithm>
#include <charconv>

#include "config/settings.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t largest_record = 1 << 20;
constexpr std::uint64_t largest_listing = std::uint64_t{1} << 30;
constexpr std::uint32_t for_all = 0777;  // less the umask, as what the program makes

bool is_absent(const Error& error) { return error.code == Code::not_found; }

std::vector<std::string> with_start(const std::vector<std::string>& names, std::string_view start) {
  std::vector<std::string> found;
  for (const std::string& name : names)
    if (name.starts_with(start)) found.push_back(name);
  return found;
}

Error in_file(const std::string& path, const Error& error) {
  return {error.code, fmt::format("{}: {}", path, error.text), -1};
}

/// The decoded content of a file; nothing if there is none.
template <class Decode>
auto read_record(Files& files, const std::string& path, std::uint64_t largest, Decode decode)
    -> Result<std::optional<typename decltype(decode(Bytes{}))::value_type>> {
  auto content = read_file(files, path, largest);
  if (!content && is_absent(content.error())) return std::nullopt;
  CAIRN_ASSIGN(const Blob blob, std::move(content));
  auto decoded = decode(blob);
  if (!decoded) return tl::unexpected<Error>(in_file(path, decoded.error()));
  return *std::move(decoded);
}

Result<std::vector<std::string>> names_in(Files& files, const std::string& folder) {
  auto names = files.list(folder);
  if (!names && is_absent(names.error())) return std::vector<std::string>{};
  return names;
}

void sort_newest_first(Listing& listing) {
  std::sort(listing.begin(), listing.end(), [](const DatasetRecord& a, const DatasetRecord& b) {
    return a.info.uuid > b.info.uuid;
  });
}

/// The record in the folder of a dataset; what is wrong with it, if something is.
struct ReadRecord {
  std::optional<DatasetRecord> record;
  std::string trouble;
};

ReadRecord read_one(Files& files, const std::string& folder) {
  const std::string path = PrefixFolder::record(folder);
  auto record = read_record(files, path, largest_record, decode_dataset_record);
  if (record && *record) return {*std::move(record), {}};
  const auto there = files.info(folder);
  if (!there && is_absent(there.error())) return {};  // its owner has moved it meanwhile
  return {{}, record ? path + ": it is not there" : record.error().text};
}

/// Of the datasets that have their folders in `folder`.
Result<Listing> read_records(Files& files, const std::string& folder,
                             std::vector<std::string>& damaged, const IoThreads* io = nullptr) {
  constexpr std::size_t at_a_time = 64;
  CAIRN_ASSIGN(const auto names, names_in(files, folder));
  std::vector<ReadRecord> found(names.size());
  const auto read_some = [&](std::size_t piece) {
    const std::size_t end = std::min(names.size(), (piece + 1) * at_a_time);
    for (std::size_t i = piece * at_a_time; i < end; ++i)
      found[i] = read_one(files, folder + "/" + names[i]);
    return Status{};
  };
  const auto alone = make_foreground();
  const IoThreads& threads = io != nullptr ? *io : IoThreads{*alone, 1};
  CAIRN_TRY(threads.each((names.size() + at_a_time - 1) / at_a_time, read_some));
  Listing listing;
  listing.reserve(found.size());
  for (ReadRecord& one : found) {
    if (one.record) listing.push_back(*std::move(one.record));
    if (!one.trouble.empty()) damaged.push_back(std::move(one.trouble));
  }
  sort_newest_first(listing);
  return listing;
}

/// The listing, if there is one. A damaged one is only a damaged copy.
std::optional<Listing> read_copy(Files& files, const PrefixFolder& folder) {
  auto listing = read_record(files, folder.listing(), largest_listing, decode_listing);
  return listing ? *std::move(listing) : std::nullopt;
}

/// The numbers of "epoch.7" and the like.
std::vector<std::uint64_t> numbers_after(const std::string& prefix,
                                         const std::vector<std::string>& names) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names) {
    std::uint64_t number = 0;
    if (!name.starts_with(prefix)) continue;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + prefix.size(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end) numbers.push_back(number);
  }
  return numbers;
}

/// The record of a plan that was made to its end, unless something newer is there: its files must
/// not take the names of that.
std::optional<DatasetRecord> plan_in(Files& files, const std::string& folder,
                                     const Listing& listing) {
  const auto plan =
      read_record(files, PrefixFolder::record(folder), largest_record, decode_dataset_record);
  if (!plan || !*plan) return std::nullopt;
  const bool newest = listing.empty() || listing.front().info.uuid < (*plan)->info.uuid;
  return newest ? *plan : std::nullopt;
}

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

}  // namespace

// --- reading ---

Result<Listing> read_listing(Files& files, const PrefixFolder& folder,
                             std::vector<std::string>& damaged, const IoThreads* io) {
  if (auto copy = read_copy(files, folder)) return *std::move(copy);
  return read_records(files, folder.datasets(), damaged, io);
}

bool is_outlived(const DatasetInfo& dataset, const Listing& listing) {
  return !dataset.is_output() &&
         std::any_of(listing.begin(), listing.end(), [&](const DatasetRecord& record) {
           return record.info.is_checkpoint() && record.info.uuid > dataset.uuid &&
                  record.failed_us == 0 && !record.quarantined;
         });
}

Result<Listing> read_dropped(Files& files, const PrefixFolder& folder,
                             std::vector<std::string>& damaged) {
  return read_records(files, folder.dropped(), damaged);
}

Result<Listing> read_attempts(Files& files, const PrefixFolder& folder) {
  CAIRN_ASSIGN(auto attempts,
               read_record(files, folder.attempts(), largest_listing, decode_listing));
  return std::move(attempts).value_or(Listing{});
}

Result<std::string> read_current(Files& files, const PrefixFolder& folder) {
  CAIRN_ASSIGN(const auto name,
               read_record(files, folder.current(), largest_record, decode_current));
  return name.value_or("");
}

Result<std::vector<UnfinishedFlush>> read_unfinished(Files& files, const PrefixFolder& folder,
                                                     const Listing& listing) {
  std::vector<UnfinishedFlush> found;
  CAIRN_ASSIGN(const auto names, names_in(files, folder.root()));
  for (const char* kind : {"epoch.", "closed."})
    for (const std::uint64_t epoch : numbers_after(kind, names)) {
      const std::string of_epoch = folder.root() + "/" + kind + std::to_string(epoch);
      CAIRN_ASSIGN(const auto inside, names_in(files, of_epoch));
      for (const std::string& name : with_start(inside, "dataset.")) {
        const std::string pending = of_epoch + "/" + name;
        const auto plan = plan_in(files, pending, listing);
        if (!plan) continue;
        UnfinishedFlush flush{*plan, {}};
        CAIRN_ASSIGN(const auto marks, names_in(files, PrefixFolder::markers(pending)));
        for (const std::uint64_t rank : numbers_after("0.", marks))
          flush.done.insert(static_cast<int>(rank));
        found.push_back(std::move(flush));
      }
    }
  return found;
}

Result<std::optional<OwnerRecord>> read_owner(Files& files, const PrefixFolder& folder) {
  return read_record(files, folder.owner(), largest_record, decode_owner_record);
}

/// A job that is started again finds what its dead run has left; that must not stop it.
bool is_rival(const OwnerRecord& owner, const OwnerRecord& me) {
  if (owner.beat_us == 0) return false;
  if (owner.job_id != me.job_id || owner.user != me.user) return true;
  return me.job_id == unnamed_job && owner.host != me.host;
}

// --- taking over ---

Keeper::Keeper(Files& files, Clock& clock, PrefixFolder folder, OwnerRecord me)
    : files_(&files), clock_(&clock), folder_(std::move(folder)), me_(std::move(me)) {}

Status Keeper::wait_for_rivals(Files& files, Clock& clock, const PrefixFolder& folder,
                               const OwnerRecord& me) {
  CAIRN_ASSIGN(const auto first, read_owner(files, folder));
  if (!first || !is_rival(*first, me)) return {};
  constexpr std::int64_t look_us = 500'000;
  for (std::int64_t waited_us = 0; waited_us < silence_us; waited_us += look_us) {
    clock.sleep_us(look_us);
    CAIRN_ASSIGN(const auto now, read_owner(files, folder));
    if (!now || !is_rival(*now, me)) return {};
    if (now->beat_us != first->beat_us || now->epoch != first->epoch)
      return fail(Code::busy,
                  "{} belongs to job {} of {}, which runs on {} (process {}): wait until it has "
                  "ended, or set SCR_PREFIX to another folder",
                  folder.prefix, now->job_id, now->user, now->host, now->process);
  }
  return {};
}

Result<Keeper> Keeper::take_over(Files& files, Clock& clock, PrefixFolder folder, OwnerRecord me,
                                 Claim claim) {
  CAIRN_TRY(make_folders(files, folder.datasets(), for_all));
  for (const std::string& above : {folder.root(), folder.prefix})
    CAIRN_TRY(files.sync_folder(above));
  Status alone = claim == Claim::forced ? Status(read_owner(files, folder).map([](const auto&) {}))
                                        : wait_for_rivals(files, clock, folder, me);
  // A record that nobody can read keeps nobody out.
  if (!alone && alone.error().code != Code::corrupt) return tl::unexpected(alone.error());
  const auto before = read_owner(files, folder);
  const auto lock = lock_owner(files, clock, folder);
  const auto now = read_owner(files, folder);
  const bool overtaken =
      claim != Claim::forced && before && now && *now && *before != *now && is_rival(**now, me);
  if (overtaken)
    return fail(Code::busy, "job {} of {} has just begun on {}: set SCR_PREFIX to another folder",
                (*now)->job_id, (*now)->user, folder.prefix);
  Keeper keeper(files, clock, std::move(folder), std::move(me));
  CAIRN_TRY(keeper.become_owner());
  CAIRN_TRY(keeper.read_datasets());
  CAIRN_ASSIGN(keeper.current_, read_current(files, keeper.folder_));
  // One that cannot be read keeps no job from its work.
  keeper.attempts_ = read_attempts(files, keeper.folder_).value_or(Listing{});
  return keeper;
}

Status Keeper::read_datasets() {
  auto copy = read_copy(*files_, folder_);
  listing_good_ = copy.has_value();
  if (listing_good_) {
    listing_ = *std::move(copy);
  } else {
    CAIRN_ASSIGN(listing_, read_records(*files_, folder_.datasets(), damaged_));
  }
  return {};
}

/// Of an epoch that is later than all that have left a trace.
Status Keeper::become_owner() {
  const auto before = read_owner(*files_, folder_);
  if (before && *before) me_.epoch = (*before)->epoch;
  CAIRN_ASSIGN(const auto names, names_in(*files_, folder_.root()));
  for (const char* kind : {"epoch.", "closed."})
    for (const std::uint64_t epoch : numbers_after(kind, names))
      me_.epoch = std::max(me_.epoch, epoch);
  ++me_.epoch;
  CAIRN_TRY(files_->make_folder(folder_.epoch(me_.epoch), for_all));
  CAIRN_TRY(close_others());  // first: a sign of life of theirs must not replace the one below
  me_.beat_us = clock_->now_us();
  return place(folder_.owner(), encode(me_));
}

/// Nobody publishes from these any more.
Status Keeper::close_others() {
  CAIRN_ASSIGN(const auto names, names_in(*files_, folder_.root()));
  for (const std::uint64_t epoch : numbers_after("epoch.", names))
    if (epoch != me_.epoch) CAIRN_TRY(files_->rename(folder_.epoch(epoch), folder_.closed(epoch)));
  return files_->sync_folder(folder_.root());
}

Result<std::vector<Keeper::Remains>> Keeper::remains() const {
  std::vector<Remains> found;
  std::vector<Remains> staged;
  CAIRN_ASSIGN(const auto names, names_in(*files_, folder_.root()));
  for (const std::uint64_t epoch : numbers_after("closed.", names)) {
    const std::string closed = folder_.closed(epoch);
    CAIRN_ASSIGN(const auto inside, names_in(*files_, closed));
    for (const std::string& name : with_start(inside, "dataset.")) {
      const std::string folder = closed + "/" + name;
      staged.push_back({folder, Remains::Kind::staged, {}, plan_in(*files_, folder, listing_)});
    }
    for (const std::string& name : with_start(inside, "deleted."))
      found.push_back({closed + "/" + name, Remains::Kind::deleted, {}, {}});
  }
  for (auto record = listing_.rbegin(); record != listing_.rend(); ++record)  // the oldest first
    if (!record->settled)
      found.push_back({folder_.dataset(record->info), Remains::Kind::unsettled, {}, {}});
  std::sort(staged.begin(), staged.end(), [](const Remains& a, const Remains& b) {
    return (a.plan ? a.plan->info.uuid : Uuid{}) < (b.plan ? b.plan->info.uuid : Uuid{});
  });
  found.insert(found.end(), staged.begin(), staged.end());
  for (Remains& remains : found) {
    CAIRN_ASSIGN(const auto inside, names_in(*files_, remains.folder));
    for (const std::string& name : with_start(inside, "manifest."))
      remains.manifests.push_back(remains.folder + "/" + name);
  }
  return found;
}

Status Keeper::remove_closed() {
  CAIRN_ASSIGN(const auto names, names_in(*files_, folder_.root()));
  for (const std::uint64_t epoch : numbers_after("closed.", names)) {
    const std::string closed = folder_.closed(epoch);
    CAIRN_ASSIGN(const auto inside, names_in(*files_, closed));
    for (const std::string& name : with_start(inside, PrefixFolder::transit_start)) {
      const std::string dataset = name.substr(PrefixFolder::transit_start.size());
      const auto again = files_->info(folder_.datasets() + "/" + dataset);  // published since
      if (!again) CAIRN_TRY(move_to_dropped(closed + "/" + name));
    }
    CAIRN_TRY(remove_all(*files_, closed));
  }
  return {};
}

Status Keeper::read_anew(const IoThreads& io) {
  CAIRN_TRY(open_listing());
  damaged_.clear();
  CAIRN_ASSIGN(listing_, read_records(*files_, folder_.datasets(), damaged_, &io));
  return {};
}

// --- changing ---

/// What is not found where this epoch prepares things has been closed by a later one.
Status Keeper::under_epoch(Status status) const {
  if (status || !is_absent(status.error())) return status;
  return fail(Code::busy,
              "another run has taken over the prefix directory {}: this one may not change it any "
              "more",
              folder_.prefix);
}

Status Keeper::place(const std::string& path, Bytes content) {
  const std::string prepared = folder_.epoch(me_.epoch) + "/new." + name_of_path(path);
  const auto write = [&]() -> Status {
    CAIRN_ASSIGN(const auto file, files_->create(prepared, 0666));
    CAIRN_TRY(file->write_at(0, content));
    CAIRN_TRY(file->sync());
    return files_->rename(prepared, path);
  };
  CAIRN_TRY(under_epoch(write()));
  return files_->sync_folder(folder_of(path));
}

Status Keeper::open_listing() {
  if (listing_opened_) return {};
  listing_good_ = false;
  CAIRN_TRY(files_->remove_file(folder_.listing()));
  CAIRN_TRY(files_->sync_folder(folder_.root()));
  listing_opened_ = true;
  return {};
}

Status Keeper::save_listing() {
  // What could not be read once may be readable the next time, and must not be forgotten.
  if (listing_good_ || !damaged_.empty()) return {};
  CAIRN_TRY(place(folder_.listing(), encode(listing_)));
  listing_good_ = true;
  listing_opened_ = false;
  return {};
}

DatasetRecord* Keeper::find(const Uuid& uuid) {
  const auto found = std::find_if(listing_.begin(), listing_.end(),
                                  [&](const auto& record) { return record.info.uuid == uuid; });
  return found == listing_.end() ? nullptr : &*found;
}

/// One that is there, though its record could not be read, may not be settled yet: its files lie
/// under the very names that these would be staged by.
Status Keeper::refuse_unknown(const DatasetInfo& dataset) {
  if (find(dataset.uuid) != nullptr) return {};
  const std::string published = folder_.dataset(dataset);
  const auto there = files_->info(published);
  if (!there && is_absent(there.error())) return {};
  return fail(Code::io,
              "dataset {} is not copied again: it is in {} already, but its record could not be "
              "read when this run began",
              dataset.number, published);
}

Status Keeper::begin(const DatasetInfo& dataset) {
  CAIRN_TRY(refuse_unknown(dataset));
  const std::string pending = folder_.pending(me_.epoch, dataset);
  const std::string markers = PrefixFolder::markers(pending);
  CAIRN_TRY(under_epoch(files_->make_folder(pending, for_all)));
  CAIRN_TRY(remove_all(*files_, markers));  // of an earlier try, whose files are made anew
  CAIRN_TRY(files_->make_folder(markers, for_all));
  CAIRN_TRY(files_->sync_folder(pending));
  return files_->sync_folder(folder_.epoch(me_.epoch));
}

Status Keeper::plan(const DatasetRecord& record) {
  const std::string pending = folder_.pending(me_.epoch, record.info);
  return under_epoch(
      write_file_atomically(*files_, PrefixFolder::record(pending), encode(record), true));
}

/// Durable before anything is done of it here: what comes back after a power failure must not be a
/// half of it in each place.
Status Keeper::adopt(const std::string& folder, const DatasetInfo& dataset) {
  const std::string mine = folder_.pending(me_.epoch, dataset);
  CAIRN_TRY(under_epoch(files_->rename(folder, mine)));
  Status durable = files_->sync_folder(folder_.epoch(me_.epoch));
  if (durable) durable = files_->sync_folder(folder_of(folder));
  if (!durable && files_->rename(mine, folder)) return durable;
  return {};
}

Status Keeper::withdraw(const DatasetInfo& dataset) {
  const std::string pending = folder_.pending(me_.epoch, dataset);
  Status renamed = files_->rename(PrefixFolder::record(pending), PrefixFolder::withdrawn(pending));
  if (renamed || !is_absent(renamed.error())) return renamed;
  return under_epoch(files_->info(pending).map([](const auto&) {}));  // it was no plan yet
}

/// A dataset that is published again stands aside until that is done, as one that is dropped: its
/// files stay whatever happens.
Status Keeper::make_way(const DatasetInfo& dataset) {
  if (find(dataset.uuid) == nullptr) return {};
  return under_epoch(
      files_->rename(folder_.dataset(dataset), folder_.in_transit(me_.epoch, dataset)));
}

Status Keeper::publish(const DatasetRecord& record) {
  CAIRN_TRY(open_listing());
  const std::string pending = folder_.pending(me_.epoch, record.info);
  const std::string published = folder_.dataset(record.info);
  const std::string aside = folder_.in_transit(me_.epoch, record.info);
  CAIRN_TRY(make_way(record.info));
  const auto take_back = [&] {
    if (find(record.info.uuid) != nullptr) (void)files_->rename(aside, published);
  };
  if (Status moved = under_epoch(files_->rename(pending, published)); !moved) {
    take_back();
    return moved;
  }
  // Taken back, so that what the caller does after an error harms nothing that counts. If that
  // cannot be done it is there, for all who look.
  Status durable = files_->sync_folder(folder_.datasets());
  if (!durable && files_->rename(published, pending)) {
    take_back();
    return durable;
  }
  std::erase_if(listing_,
                [&](const DatasetRecord& old) { return old.info.uuid == record.info.uuid; });
  listing_.push_back(record);
  sort_newest_first(listing_);
  (void)remove_all(*files_, aside);  // else the next owner finds it
  return {};
}

Status Keeper::abandon(const DatasetInfo& dataset) {
  return remove_all(*files_, folder_.pending(me_.epoch, dataset));
}

Status Keeper::update(const DatasetRecord& record) {
  DatasetRecord* known = find(record.info.uuid);
  if (known == nullptr)
    return fail(Code::not_found, "{} is not in {}", record.label(), folder_.prefix);
  CAIRN_TRY(open_listing());
  CAIRN_TRY(place(PrefixFolder::record(folder_.dataset(record.info)), encode(record)));
  *known = record;
  return {};
}

Status Keeper::mark_settled(DatasetRecord record) {
  const auto newest = std::find_if(listing_.begin(), listing_.end(),
                                   [](const auto& listed) { return listed.info.is_checkpoint(); });
  if (newest != listing_.end() && newest->info.uuid == record.info.uuid)
    CAIRN_TRY(set_current(record.info.name));
  CAIRN_TRY(remove_all(*files_, PrefixFolder::markers(folder_.dataset(record.info))));
  record.settled = true;
  return update(record);
}

Status Keeper::set_attempts(Listing attempts) {
  CAIRN_TRY(place(folder_.attempts(), encode(attempts)));
  attempts_ = std::move(attempts);
  return {};
}

Status Keeper::set_current(const std::string& name) {
  CAIRN_TRY(place(folder_.current(), encode_current(name)));
  current_ = name;
  return {};
}

/// The dataset's folder has been moved from where datasets are.
Status Keeper::forget(const DatasetInfo& dataset) {
  std::erase_if(listing_,
                [&](const DatasetRecord& record) { return record.info.uuid == dataset.uuid; });
  CAIRN_TRY(files_->sync_folder(folder_.datasets()));
  const bool is_there =
      std::any_of(listing_.begin(), listing_.end(),
                  [&](const DatasetRecord& record) { return record.info.name == current_; });
  return current_.empty() || is_there ? Status{} : set_current("");
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

/// `from` is in transit.
Status Keeper::move_to_dropped(const std::string& from) {
  CAIRN_TRY(files_->make_folder(folder_.dropped(), for_all));
  const std::string name = name_of_path(from).substr(PrefixFolder::transit_start.size());
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

/// The other way round; here the second decides.
Status Keeper::put_back(const DatasetRecord& record) {
  if (find(record.info.uuid) != nullptr)
    return fail(Code::bad_argument, "{} is in {} already", record.label(), folder_.prefix);
  CAIRN_TRY(open_listing());
  const std::string transit = folder_.in_transit(me_.epoch, record.info);
  CAIRN_TRY(under_epoch(files_->rename(folder_.dropped(record.info), transit)));
  CAIRN_TRY(under_epoch(files_->rename(transit, folder_.dataset(record.info))));
  listing_.push_back(record);
  sort_newest_first(listing_);
  CAIRN_TRY(files_->sync_folder(folder_.datasets()));
  return files_->sync_folder(folder_.dropped());
}

std::function<void()> Keeper::heartbeat() const {
  return [files = files_, clock = clock_, folder = folder_, me = me_]() mutable {
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
