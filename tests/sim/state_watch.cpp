#include "state_watch.hpp"

#include <algorithm>

#include "cache/catalog.hpp"
#include "memory_files.hpp"
#include "prefix/contents.hpp"
#include "recovery/rebuild_sets.hpp"
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

CacheState recorded_state(const Remains& remains) {
  if (remains.parts.empty()) return CacheState::absent;
  const Summary summary = summarise(remains);
  if (summary.generation == 0) return CacheState::incomplete;
  return summary.is_written(summary.generation) ? CacheState::written : CacheState::committed;
}

void StateWatch::fail_power(const std::function<void()>& fail) {
  look();
  fail();
  there_.reset();
  forget_caches();
}

void StateWatch::forget_caches() {
  std::set<std::string> names = names_in_caches();
  for (const auto& [name, state] : cached_) names.insert(name);
  for (const std::string& name : names) {
    const Remains remains = find_parts_of(name);
    const CacheState now = recorded_state(remains);
    std::set<CacheState>& had = had_[name];
    // What is left may have its checksums, and what is lost had none.
    const bool is_rest_of_written =
        now == CacheState::committed && had.contains(CacheState::written);
    if (now != CacheState::absent && !is_rest_of_written && !had.contains(now))
      throw Violation(
          fmt::format("(s) {}: {} after a loss, which it has never been", name, name_of(now)));
    had.insert(now);
    cached_[name] = now;
    records_[name] = generations_in(remains);
    reduced_.insert(name);
  }
}

void StateWatch::begin_run() {
  has_lost_node_ = false;
  lost_.clear();
}

void StateWatch::lose_node(const std::function<void()>& wipe) {
  look();
  // A record is prepared by a write, which is no change that is looked at.
  for (const std::string& name : names_in_caches())
    records_[name] = generations_in(find_parts_of(name));
  const auto before = records_;
  wipe();
  has_lost_node_ = true;
  forget_caches();
  for (const auto& [name, records] : before)
    for (const auto& [generation, ranks] : records.prepared) {
      const std::set<int>& left = records_[name].prepared[generation];
      for (const int rank : ranks)
        if (!left.contains(rank)) lost_[name][generation].insert(rank);
    }
}

void StateWatch::see(const FileOperation& operation) {
  look();
  if (operation.path.starts_with(settings_.prefix + "/.cairn/")) {
    has_changed_ = has_changed_ || may_change_prefix(operation);
  } else if (may_change_caches(operation)) {
    const std::string name =
        dataset_of_record(operation.to.empty() ? operation.path : operation.to);
    if (name.empty()) return;
    changed_.insert(name);
    if (operation.name == "remove_file") reduced_.insert(name);
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
  const CacheState now = recorded_state(remains);
  const auto known = cached_.emplace(name, CacheState::absent).first;
  const CacheState before = std::exchange(known->second, now);
  check(name + " in the caches", before, now);
  had_[name].insert(now);
  check_derived(name, remains, now);
  check_commit(name, remains);
}

/// The first record of a generation is committed only after all ranks have prepared theirs. Those
/// of a node that was lost meanwhile count: the ranks had agreed, or had not. Later it is rebuilt.
void StateWatch::check_commit(const std::string& name, const Remains& remains) {
  records_[name] = generations_in(remains);
  for (const std::uint64_t generation : records_[name].committed) {
    const bool is_first = committed_[name].insert(generation).second;
    if (!is_first) continue;
    std::set<int> prepared = records_[name].prepared[generation];
    prepared.merge(std::set<int>(lost_[name][generation]));
    if (prepared.size() != remains.ranks)
      throw Violation(
          fmt::format("(s) generation {} of {} is committed, though {} of {} ranks "
                      "have prepared it",
                      generation, name, prepared.size(), remains.ranks));
  }
}

StateWatch::Generations StateWatch::generations_in(const Remains& remains) {
  Generations found;
  for (const HeldPart& part : remains.parts)
    for (const HeldRecord& own : part.own) {
      const std::uint64_t generation = own.record.encoding.generation;
      found.prepared[generation].insert(part.owner);
      if (own.committed) found.committed.insert(generation);
    }
  return found;
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

std::set<std::string> StateWatch::names_in_caches() const {
  std::set<std::string> found;
  for (const Place& place : cluster_.places())
    for (const std::string& path : place.volume->files_below())
      if (const std::string name = dataset_of_record(path); !name.empty()) found.insert(name);
  return found;
}

/// What a run of any number of ranks would conclude.
void StateWatch::check_derived(const std::string& name, const Remains& remains,
                               CacheState recorded) const {
  if (recorded == CacheState::absent) return;
  const Summary summary = summarise(remains);
  for (const std::uint32_t ranks : {summary.ranks, summary.ranks + 1})
    for (const bool distribute : {true, false}) {
      const CacheState derived = judge(summary, ranks, distribute);
      // `committed` is what is not looked at closer yet.
      const bool is_open = derived == CacheState::committed && distribute && ranks == summary.ranks;
      if (!is_open && !may_be_derived(recorded, derived))
        throw Violation(fmt::format("(s) {}: a run of {} ranks derives {} from {}", name, ranks,
                                    name_of(derived), name_of(recorded)));
    }
  const bool is_whole = recorded != CacheState::incomplete && !reduced_.contains(name);
  if (!is_whole) return;
  const auto no_files = make_memory_files({}, [] { return 0; });  // read where records are missing
  if (const auto errors = look_at_records(*no_files, remains); !errors.empty())
    throw Violation(
        fmt::format("(s) {} is derived to be lost, though nothing of it was removed: {}", name,
                    errors.front().text));
}

bool StateWatch::may_begin_flush_of(const Uuid& uuid) {
  const auto files = make_memory_files({{settings_.prefix, prefix_}}, [] { return 0; });
  for (const BegunFolder& begun : read_or_fail(begun_folders(*files, {settings_.prefix}))) {
    if (begun.uuid != uuid || begun.state != PrefixState::planned) continue;
    const auto plan = read_or_fail(read_dataset_record(*files, begun.path));
    if (!plan) continue;
    const std::string name = DatasetFolder::folder_name(plan->info);
    return may_begin_flush(recorded_state(find_parts_of(name)), plan->info.in_place());
  }
  return true;
}

}  // namespace cairn::sim
