#include "prefix/contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "base/is_absent.hpp"
#include "prefix/copy_files.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t largest_record = 1 << 20;
constexpr std::uint64_t largest_listing = std::uint64_t{1} << 30;

Error in_file(const std::string& path, const Error& error) {
  return {error.code, fmt::format("{}: {}", path, error.text), -1};
}

/// The decoded content of the file of that path; nothing if there is none.
template <class Decode>
auto decode_content(Result<Blob> content, const std::string& path, Decode decode)
    -> Result<std::optional<typename decltype(decode(Bytes{}))::value_type>> {
  if (!content && is_absent(content.error())) return std::nullopt;
  CAIRN_ASSIGN(const Blob blob, std::move(content));
  auto decoded = decode(blob);
  if (!decoded) return tl::unexpected<Error>(in_file(path, decoded.error()));
  return *std::move(decoded);
}

template <class Decode>
auto read_record(Files& files, const std::string& path, std::uint64_t largest, Decode decode) {
  return decode_content(read_file(files, path, largest), path, decode);
}

/// Empty if there is none.
Result<Listing> read_list(Files& files, const std::string& path) {
  CAIRN_ASSIGN(auto list, read_record(files, path, largest_listing, decode_listing));
  return std::move(list).value_or(Listing{});
}

bool is_newer(const DatasetRecord& a, const DatasetRecord& b) { return a.info.uuid > b.info.uuid; }

/// By the name of its folder; zeros if that has none.
Uuid uuid_in(std::string_view name) {
  return parse_uuid(name.substr(name.rfind('.') + 1)).value_or(Uuid{});
}

/// Not if it is no record, but a link, a device or the like: that is not transient.
bool may_be_good(Files& files, const std::string& folder, const Error& error) {
  if (error.code == Code::newer_format) return true;
  if (error.code != Code::io || uuid_in(name_of_path(folder)) == Uuid{}) return false;
  const auto around = files.info(folder);
  if (around && around->kind != Kind::folder) return false;
  const auto record = files.info(DatasetFolder::record(folder));
  return !record || (record->kind == Kind::file && record->size <= largest_record);
}

/// Also if an error leaves that unknown.
bool may_exist(Files& files, const std::string& path) {
  const auto there = files.info(path);
  return there || !is_absent(there.error());
}

/// The names of datasets' folders, by the UUIDs in them: what is read in this order need not be
/// moved any more.
std::vector<std::string> newest_first(std::vector<std::string> names) {
  std::vector<std::pair<Uuid, std::size_t>> order;
  order.reserve(names.size());
  for (const std::string& name : names) order.emplace_back(uuid_in(name), order.size());
  std::sort(order.begin(), order.end(), std::greater<>());
  std::vector<std::string> sorted;
  sorted.reserve(names.size());
  for (const auto& [uuid, at] : order) sorted.push_back(std::move(names[at]));
  return sorted;
}

}  // namespace

Result<std::vector<std::string>> names_in(Files& files, const std::string& folder) {
  auto names = files.list(folder);
  if (!names && is_absent(names.error())) return std::vector<std::string>{};
  return names;
}

std::vector<std::string> with_start(const std::vector<std::string>& names, std::string_view start) {
  std::vector<std::string> found;
  for (const std::string& name : names)
    if (name.starts_with(start)) found.push_back(name);
  return found;
}

std::vector<std::uint64_t> numbers_after(std::string_view start,
                                         const std::vector<std::string>& names) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names) {
    std::uint64_t number = 0;
    if (!name.starts_with(start)) continue;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + start.size(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end) numbers.push_back(number);
  }
  return numbers;
}

const DatasetRecord* find_in(const Listing& listing, const Uuid& uuid) {
  const auto found = std::find_if(listing.begin(), listing.end(),
                                  [&](const auto& record) { return record.info.uuid == uuid; });
  return found == listing.end() ? nullptr : &*found;
}

const DatasetRecord* find_named(const Listing& listing, const std::string& name) {
  if (name.empty()) return nullptr;
  const auto found = std::find_if(listing.begin(), listing.end(),
                                  [&](const auto& record) { return record.info.name == name; });
  return found == listing.end() ? nullptr : &*found;
}

void insert(Listing& listing, DatasetRecord record) {
  const auto older = std::upper_bound(listing.begin(), listing.end(), record, is_newer);
  listing.insert(older, std::move(record));
}

bool has_unsettled(const Listing& listing) {
  return std::any_of(listing.begin(), listing.end(),
                     [](const DatasetRecord& record) { return !record.settled; });
}

Result<std::optional<DatasetRecord>> read_dataset_record(Files& files, const std::string& folder) {
  return read_record(files, DatasetFolder::record(folder), largest_record, decode_dataset_record);
}

void sort_in(Files& files, const std::string& folder, Result<std::optional<DatasetRecord>>&& read,
             Listing& listing, std::vector<std::string>& damaged,
             std::vector<UnreadDataset>& unread) {
  if (read && *read) return insert(listing, **std::move(read));
  const auto there = files.info(folder);
  if (!there && is_absent(there.error())) return;
  if (read)
    damaged.push_back(DatasetFolder::record(folder) + ": it does not exist");
  else if (may_be_good(files, folder, read.error()))
    unread.push_back({folder, uuid_in(name_of_path(folder)), read.error().text,
                      // its markers go when all its files have their names
                      may_exist(files, DatasetFolder::markers(folder))});
  else
    damaged.push_back(read.error().text);
}

Result<Listing> read_records(Files& files, const std::string& folder,
                             std::vector<std::string>& damaged, const IoThreads* io,
                             std::vector<UnreadDataset>* unread) {
  constexpr std::size_t at_a_time = 64;
  CAIRN_ASSIGN(auto listed, names_in(files, folder));
  if (listed.empty()) return Listing{};
  const std::vector<std::string> names = newest_first(std::move(listed));
  CAIRN_ASSIGN(const auto opened, files.open_folder(folder));
  std::vector<Result<std::optional<DatasetRecord>>> read(names.size());
  const auto read_one = [&](std::size_t i) {
    const std::string path = DatasetFolder::record(names[i]);
    read[i] = decode_content(opened->read_file(path, largest_record), folder + "/" + path,
                             decode_dataset_record);
  };
  const auto read_some = [&](std::size_t piece) {
    const std::size_t end = std::min(names.size(), (piece + 1) * at_a_time);
    for (std::size_t i = piece * at_a_time; i < end; ++i) read_one(i);
    return Status{};
  };
  const auto alone = make_foreground();
  const IoThreads& threads = io != nullptr ? *io : IoThreads{*alone, 1};
  CAIRN_TRY(threads.each((names.size() + at_a_time - 1) / at_a_time, read_some));
  Listing listing;
  listing.reserve(names.size());
  std::vector<UnreadDataset> may_be_good;
  for (std::size_t i = 0; i < names.size(); ++i)
    sort_in(files, folder + "/" + names[i], std::move(read[i]), listing, damaged, may_be_good);
  for (UnreadDataset& dataset : may_be_good)
    if (unread != nullptr)
      unread->push_back(std::move(dataset));
    else
      damaged.push_back(std::move(dataset.why));
  return listing;
}

std::optional<Listing> read_copy(Files& files, const PrefixFolder& folder) {
  auto listing = read_record(files, folder.listing(), largest_listing, decode_listing);
  return listing ? *std::move(listing) : std::nullopt;
}

Result<Listing> read_listing(Files& files, const PrefixFolder& folder,
                             std::vector<std::string>& damaged, const IoThreads* io,
                             std::vector<UnreadDataset>* unread) {
  if (auto copy = read_copy(files, folder)) return *std::move(copy);
  return read_records(files, folder.datasets(), damaged, io, unread);
}

bool Dropped::has(const Uuid& uuid) const {
  return find_in(listing, uuid) != nullptr ||
         std::find(damaged.begin(), damaged.end(), uuid) != damaged.end() ||
         std::any_of(unread.begin(), unread.end(),
                     [&](const UnreadDataset& dataset) { return dataset.uuid == uuid; });
}

Result<Dropped> read_dropped(Files& files, const PrefixFolder& folder) {
  Dropped dropped;
  std::vector<std::string> damaged;
  CAIRN_ASSIGN(dropped.listing,
               read_records(files, folder.dropped(), damaged, nullptr, &dropped.unread));
  if (damaged.empty()) return dropped;
  CAIRN_ASSIGN(const auto names, names_in(files, folder.dropped()));
  for (const std::string& name : names)
    if (const Uuid uuid = uuid_in(name); uuid != Uuid{} && !dropped.has(uuid))
      dropped.damaged.push_back(uuid);
  return dropped;
}

Result<std::vector<BegunFolder>> begun_folders(Files& files, const PrefixFolder& folder) {
  std::vector<BegunFolder> found;
  CAIRN_ASSIGN(const auto names, names_in(files, folder.root()));
  for (const char* kind : {"epoch.", "closed."})
    for (const std::uint64_t epoch : numbers_after(kind, names)) {
      const std::string of_epoch = folder.root() + "/" + kind + std::to_string(epoch);
      CAIRN_ASSIGN(const auto inside, names_in(files, of_epoch));
      for (const std::string& name : inside) {
        BegunFolder begun{of_epoch + "/" + name, epoch, uuid_in(name), PrefixState::absent};
        if (name.starts_with("deleted."))
          begun.state = PrefixState::deleting;
        else if (name.starts_with(DatasetFolder::transit_start))
          begun.state = PrefixState::dropped;
        else if (!name.starts_with("dataset."))
          continue;
        else if (may_exist(files, DatasetFolder::record(begun.path)))
          begun.state = PrefixState::planned;
        found.push_back(std::move(begun));
      }
    }
  return found;
}

PrefixState state_in_prefix(const Uuid& uuid, const Listing& listing,
                            const std::vector<UnreadDataset>& unread, const Dropped& dropped,
                            const Listing& attempts, const Listing& deleted,
                            const std::vector<BegunFolder>& begun) {
  const auto has_begun = [&](PrefixState state) {
    return std::any_of(begun.begin(), begun.end(), [&](const BegunFolder& one) {
      return one.uuid == uuid && one.state == state;
    });
  };
  const auto is_quarantined_in = [&](const Listing& records) {
    const DatasetRecord* record = find_in(records, uuid);
    return record != nullptr && state_of(*record) == PrefixState::quarantined;
  };
  const bool has_died = is_quarantined_in(attempts);
  if (const DatasetRecord* there = find_in(listing, uuid)) {
    const PrefixState state = state_of(*there);
    if (!has_died) return state;
    return state == PrefixState::failed ? PrefixState::held_back : PrefixState::quarantined;
  }
  const bool is_unread =
      std::any_of(unread.begin(), unread.end(), [&](const auto& one) { return one.uuid == uuid; });
  if (is_unread) return has_died ? PrefixState::held_back : PrefixState::unreadable;
  for (const PrefixState state : {PrefixState::deleting, PrefixState::planned})
    if (has_begun(state)) return state;
  if (find_in(deleted, uuid) != nullptr) return PrefixState::deleted;
  if (dropped.has(uuid) || has_begun(PrefixState::dropped))
    return has_died || is_quarantined_in(dropped.listing) ? PrefixState::quarantined
                                                          : PrefixState::dropped;
  return has_died ? PrefixState::held_back : PrefixState::absent;
}

bool is_outlived(const DatasetInfo& dataset, const Listing& listing) {
  return !dataset.is_output() &&
         std::any_of(listing.begin(), listing.end(), [&](const DatasetRecord& record) {
           return record.info.is_checkpoint() && record.info.uuid > dataset.uuid &&
                  may_restart_from(state_of(record));
         });
}

Result<Listing> read_attempts(Files& files, const PrefixFolder& folder) {
  return read_list(files, folder.attempts());
}

Result<Listing> read_deleted(Files& files, const PrefixFolder& folder, std::string* damage) {
  auto deleted = read_list(files, folder.deleted_list());
  if (deleted || !is_damage(deleted.error().code)) return deleted;
  if (damage != nullptr)
    *damage = fmt::format(
        "{}: the list of deleted datasets is lost, so they may reappear from caches and scavenged "
        "copies; if one is listed again, delete it again (cairn index delete)",
        deleted.error().text);
  return Listing{};
}

Result<std::string> read_current(Files& files, const PrefixFolder& folder, std::string* damage) {
  auto name = read_record(files, folder.current(), largest_record, decode_current);
  if (name) return (*std::move(name)).value_or("");
  if (name.error().code != Code::corrupt) return tl::unexpected(name.error());
  if (damage != nullptr)
    *damage = fmt::format(
        "{} is damaged: a restart uses the newest checkpoint; cairn index current NAME chooses "
        "another",
        folder.current());
  return std::string();
}

std::string current_in(const Listing& listing, const std::string& named) {
  const auto newest = std::find_if(listing.begin(), listing.end(),
                                   [](const auto& record) { return record.info.is_checkpoint(); });
  return newest != listing.end() && !newest->settled ? newest->info.name : named;
}

Result<std::vector<std::string>> saved_caches(Files& files, const PrefixFolder& folder) {
  std::vector<std::string> caches;
  CAIRN_ASSIGN(const std::vector<std::string> nodes, names_in(files, folder.saved().scavenged()));
  if (nodes.empty()) return caches;
  for (const std::string& node : nodes) caches.push_back(folder.saved().of_node(node));
  caches.push_back(folder.saved().rebuilt());
  std::erase_if(caches, [&](const std::string& path) {
    const auto info = files.info(path);
    return info ? info->kind != Kind::folder : info.error().code == Code::not_found;
  });
  return caches;
}

Result<bool> is_saved(Files& files, const PrefixFolder& folder, const DatasetInfo& dataset) {
  CAIRN_ASSIGN(const std::vector<std::string> caches, saved_caches(files, folder));
  return std::any_of(caches.begin(), caches.end(), [&](const std::string& cache) {
    const auto info = files.info(cache + "/" + DatasetFolder::folder_name(dataset));
    return info || info.error().code != Code::not_found;
  });
}

Result<std::optional<OwnerRecord>> read_owner(Files& files, const PrefixFolder& folder) {
  return read_record(files, folder.owner(), largest_record, decode_owner_record);
}

/// Epochs of a directory that was somewhere else, as another file system is mounted there now, may
/// have the same number. What cannot be read now says nothing.
bool is_closed(Files& files, const PrefixFolder& folder, const OwnerRecord& me) {
  const auto there = files.info(folder.epoch(me.epoch));
  if (!there) return is_absent(there.error());
  const auto owner = read_owner(files, folder);
  return owner && (!*owner || (*owner)->run != me.run || (*owner)->epoch != me.epoch);
}

Status check_rights(Files& files, const PrefixFolder& folder, const OwnerRecord& me,
                    const IsItself& is_itself) {
  if (!is_closed(files, folder, me)) return {};
  CAIRN_TRY(is_itself());
  const auto owner = read_owner(files, folder);
  const bool has_another =
      owner && *owner && ((*owner)->run != me.run || (*owner)->epoch != me.epoch);
  if (has_another)
    return fail(Code::busy, "another job or command has taken over {}", folder.prefix);
  return fail(Code::busy, "the directory {} of this run was removed or renamed",
              folder.epoch(me.epoch));
}

}  // namespace cairn
