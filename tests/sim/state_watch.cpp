#include "state_watch.hpp"

#include <algorithm>

#include "cache/catalog.hpp"
#include "memory_files.hpp"
#include "prefix/contents.hpp"
#include "seam.hpp"

namespace cairn::sim {
namespace {

using Names = std::vector<std::string>;

/// In the prefix directory a state changes where a record or a directory comes or goes.
bool may_change_prefix(const FileOperation& operation) {
  return operation.name == "rename" || operation.name == "remove_folder" ||
         (operation.name == "remove_file" && operation.path.ends_with("/dataset"));
}

bool may_change_caches(const FileOperation& operation) {
  return operation.name == "rename" || operation.name == "create" ||
         operation.name == "remove_file";
}

/// "dataset.5.<uuid>" of ".../dataset.5.<uuid>/rank.1/record", or record.new; empty if the path is
/// neither.
std::string dataset_of_record(std::string_view path) {
  const auto begin = path.find("/dataset.");
  const bool is_record = path.ends_with("/record") || path.ends_with("/record.new");
  if (begin == std::string_view::npos || !is_record) return "";
  return std::string(path.substr(begin + 1, path.find('/', begin + 1) - begin - 1));
}

Uuid uuid_of(std::string_view name) {
  return parse_uuid(name.substr(name.rfind('.') + 1)).value_or(Uuid{});
}

template <class State>
void check(const std::string& what, State before, State after) {
  if (!may_follow(before, after))
    throw Violation(fmt::format("(s) {}: {} after {}", what, name_of(after), name_of(before)));
}

template <class Value>
Value read_or_fail(Result<Value> read) {
  if (!read) throw Violation(fmt::format("(s) {}", read.error().text));
  return *std::move(read);
}

}  // namespace

void StateWatch::forget() {
  there_.reset();
  cached_.clear();
  changed_.clear();
}

void StateWatch::see(const FileOperation& operation) {
  look();
  if (operation.path.starts_with(settings_.prefix + "/.cairn/")) {
    has_changed_ = has_changed_ || may_change_prefix(operation);
  } else if (may_change_caches(operation)) {
    const std::string name =
        dataset_of_record(operation.to.empty() ? operation.path : operation.to);
    if (!name.empty()) changed_.insert(name);
  }
}

void StateWatch::look() {
  const bool is_new = !there_ || has_changed_ || !changed_.empty();
  for (const std::string& name : std::exchange(changed_, {})) look_at_caches(name);
  if (!there_ || std::exchange(has_changed_, false)) look_at_prefix();
  if (is_new && !has_lost_node_) check_pairs();
}

// --- the prefix directory ---

void StateWatch::look_at_prefix() {
  const auto now = read_prefix();
  if (there_)
    for (const auto& [uuid, state] : now) {
      const auto known = there_->find(uuid);
      const PrefixState before = known == there_->end() ? PrefixState::absent : known->second;
      check(fmt::format("{} in the prefix directory", text_of(uuid)), before, state);
      const bool begins = state == PrefixState::planned && !is_listed(before) && !has_lost_node_;
      if (begins && before != state && before != PrefixState::dropped && !may_begin_flush_of(uuid))
        throw Violation(
            fmt::format("(s) a flush of {} begins, which is not committed", text_of(uuid)));
    }
  there_ = now;
}

/// Of all that are known there in any way, or were.
std::map<Uuid, PrefixState> StateWatch::read_prefix() {
  const auto files = make_memory_files({{settings_.prefix, prefix_}}, [] { return 0; });
  const PrefixFolder folder{settings_.prefix};
  std::vector<std::string> damaged;
  std::vector<UnreadDataset> unread;
  const Listing listing =
      read_or_fail(read_records(*files, folder.datasets(), damaged, nullptr, &unread));
  const Dropped dropped = read_or_fail(read_dropped(*files, folder));
  const Listing attempts = read_or_fail(read_attempts(*files, folder));
  const Listing deleted = read_or_fail(read_deleted(*files, folder));
  const auto begun = read_or_fail(begun_folders(*files, folder));
  std::set<Uuid> all;
  for (const auto* records : {&listing, &dropped.listing, &attempts, &deleted})
    for (const DatasetRecord& record : *records) all.insert(record.info.uuid);
  for (const BegunFolder& one : begun) all.insert(one.uuid);
  if (there_)
    for (const auto& [uuid, state] : *there_) all.insert(uuid);
  std::map<Uuid, PrefixState> states;
  for (const Uuid& uuid : all)
    states[uuid] = state_in_prefix(uuid, listing, unread, dropped, attempts, deleted, begun);
  return states;
}

// --- both ---

void StateWatch::check_pairs() const {
  for (const auto& [name, cached] : cached_) {
    const auto known = there_->find(uuid_of(name));
    const PrefixState there = known == there_->end() ? PrefixState::absent : known->second;
    if (!may_exist_together(cached, there))
      throw Violation(fmt::format("(s) {}: {} in the caches, and {} in the prefix directory", name,
                                  name_of(cached), name_of(there)));
  }
}

// --- the caches ---

void StateWatch::look_at_caches(const std::string& name) {
  const Remains remains = find_parts_of(name);
  const CacheState now = state_of(remains);
  const auto [known, is_new] = cached_.emplace(name, now);
  if (is_new) return;  // after a power failure it may be in any state
  const CacheState before = std::exchange(known->second, now);
  check(name + " in the caches", before, now);
  std::set<int> prepared;
  for (const HeldPart& part : remains.parts)
    if (!part.own.empty()) prepared.insert(part.owner);
  const bool is_new_commit = now == CacheState::committed && before != now && !has_lost_node_;
  if (is_new_commit && prepared.size() != remains.ranks)
    throw Violation(fmt::format("(s) {} is committed, though {} of {} ranks are prepared", name,
                                prepared.size(), remains.ranks));
}

Remains StateWatch::find_parts_of(const std::string& name) const {
  Remains remains;
  remains.uuid = uuid_of(name);
  for (const Place& place : cluster_.places()) {
    const std::shared_ptr<Volume> volume(std::shared_ptr<void>(), place.volume);
    const auto files = make_memory_files({{place.mount, volume}}, [] { return 0; });
    const std::string user = place.mount + "/" + settings_.user;
    for (const std::string& job : names_in(*files, user).value_or(Names{})) {
      const std::string folder = user + "/" + job + "/" + name;
      for (const std::string& part : names_in(*files, folder).value_or(Names{}))
        if (const auto owner = owner_of({folder + "/" + part}))
          remains.parts.push_back(read_part(*files, {folder + "/" + part}, *owner, remains.uuid));
    }
  }
  for (const HeldPart& part : remains.parts)
    for (const HeldRecord& own : part.own) remains.ranks = own.record.dataset.ranks;
  return remains;
}

CacheState StateWatch::state_of(const Remains& remains) {
  if (remains.parts.empty()) return CacheState::absent;
  const Summary summary = summarise(remains);
  return judge(summary, summary.ranks, true);
}

bool StateWatch::may_begin_flush_of(const Uuid& uuid) {
  const auto files = make_memory_files({{settings_.prefix, prefix_}}, [] { return 0; });
  for (const BegunFolder& begun : read_or_fail(begun_folders(*files, {settings_.prefix}))) {
    if (begun.uuid != uuid || begun.state != PrefixState::planned) continue;
    const auto plan = read_or_fail(read_dataset_record(*files, begun.path));
    if (!plan) continue;
    const std::string name = DatasetFolder::folder_name(plan->info);
    return may_begin_flush(state_of(find_parts_of(name)), plan->info.in_place());
  }
  return true;
}

}  // namespace cairn::sim
