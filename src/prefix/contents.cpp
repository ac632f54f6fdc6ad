#include "prefix/contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "prefix/copy_files.hpp"

namespace cairn {
namespace {

constexpr std::uint64_t largest_record = 1 << 20;
constexpr std::uint64_t largest_listing = std::uint64_t{1} << 30;

bool is_absent(const Error& error) { return error.code == Code::not_found; }

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

/// What is wrong with the record in the folder of a dataset, which was read with this outcome;
/// empty where its owner has moved it meanwhile.
std::string trouble_with(Files& files, const std::string& folder,
                         const Result<std::optional<DatasetRecord>>& read) {
  const auto there = files.info(folder);
  if (!there && is_absent(there.error())) return {};
  return read ? PrefixFolder::record(folder) + ": it is not there" : read.error().text;
}

/// By the name of its folder; zeros if that has none.
Uuid uuid_in(std::string_view name) {
  return parse_uuid(name.substr(name.rfind('.') + 1)).value_or(Uuid{});
}

bool may_be_good(const Result<std::optional<DatasetRecord>>& read) {
  return !read && !is_damage(read.error().code);
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

void insert(Listing& listing, DatasetRecord record) {
  const auto older = std::upper_bound(listing.begin(), listing.end(), record, is_newer);
  listing.insert(older, std::move(record));
}

Result<std::optional<DatasetRecord>> read_dataset_record(Files& files, const std::string& folder) {
  return read_record(files, PrefixFolder::record(folder), largest_record, decode_dataset_record);
}

Result<Listing> read_records(Files& files, const std::string& folder,
                             std::vector<std::string>& damaged, const IoThreads* io,
                             std::vector<UnreadDataset>* unread) {
  constexpr std::size_t at_a_time = 64;
  CAIRN_ASSIGN(auto listed, names_in(files, folder));
  if (listed.empty()) return Listing{};
  const std::vector<std::string> names = newest_first(std::move(listed));
  CAIRN_ASSIGN(const auto opened, files.open_folder(folder));
  Listing listing(names.size());
  std::vector<std::string> troubles(names.size());
  std::vector<char> good(names.size());  // not bool: threads write neighbours
  const auto read_one = [&](std::size_t i) {
    const std::string path = PrefixFolder::record(names[i]);
    auto record = decode_content(opened->read_file(path, largest_record), folder + "/" + path,
                                 decode_dataset_record);
    if (record && *record)
      listing[i] = **std::move(record);
    else
      troubles[i] = trouble_with(files, folder + "/" + names[i], record);
    good[i] = may_be_good(record) ? 1 : 0;
  };
  const auto read_some = [&](std::size_t piece) {
    const std::size_t end = std::min(names.size(), (piece + 1) * at_a_time);
    for (std::size_t i = piece * at_a_time; i < end; ++i) read_one(i);
    return Status{};
  };
  const auto alone = make_foreground();
  const IoThreads& threads = io != nullptr ? *io : IoThreads{*alone, 1};
  CAIRN_TRY(threads.each((names.size() + at_a_time - 1) / at_a_time, read_some));
  for (std::size_t i = 0; i < troubles.size(); ++i) {
    if (troubles[i].empty()) continue;
    if (unread != nullptr && good[i] != 0)
      unread->push_back({folder + "/" + names[i], uuid_in(names[i]), std::move(troubles[i])});
    else
      damaged.push_back(std::move(troubles[i]));
  }
  // Those that could not be read: no record is without ranks.
  std::erase_if(listing, [](const DatasetRecord& record) { return record.info.ranks == 0; });
  if (!std::is_sorted(listing.begin(), listing.end(), is_newer))
    std::sort(listing.begin(), listing.end(), is_newer);
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

Result<Listing> read_dropped(Files& files, const PrefixFolder& folder,
                             std::vector<std::string>& damaged) {
  return read_records(files, folder.dropped(), damaged);
}

bool is_outlived(const DatasetInfo& dataset, const Listing& listing) {
  return !dataset.is_output() &&
         std::any_of(listing.begin(), listing.end(), [&](const DatasetRecord& record) {
           return record.info.is_checkpoint() && record.info.uuid > dataset.uuid &&
                  record.failed_us == 0 && !record.quarantined;
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
        "{}: it is not known which datasets were deleted, and what caches and scavenged copies "
        "have of them may come back; give cairn index delete for them again",
        deleted.error().text);
  return Listing{};
}

Result<std::string> read_current(Files& files, const PrefixFolder& folder) {
  CAIRN_ASSIGN(const auto name,
               read_record(files, folder.current(), largest_record, decode_current));
  return name.value_or("");
}

Result<std::vector<std::string>> saved_caches(Files& files, const PrefixFolder& folder) {
  std::vector<std::string> caches;
  CAIRN_ASSIGN(const std::vector<std::string> nodes, names_in(files, folder.scavenged()));
  if (nodes.empty()) return caches;
  for (const std::string& node : nodes) caches.push_back(folder.scavenged(node));
  caches.push_back(folder.rebuilt());
  std::erase_if(caches, [&](const std::string& path) {
    const auto info = files.info(path);
    return !info || info->kind != Kind::folder;
  });
  return caches;
}

Result<std::optional<OwnerRecord>> read_owner(Files& files, const PrefixFolder& folder) {
  return read_record(files, folder.owner(), largest_record, decode_owner_record);
}

}  // namespace cairn
