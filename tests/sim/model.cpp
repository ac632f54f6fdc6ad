#include "model.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "records/set_layout.hpp"
#include "session/session.hpp"
#include "topology/sets.hpp"

namespace cairn::sim {

// --- a run ---

void Model::begin_run(const Nodes& placement) {
  ++run_;
  placement_ = placement;
  present_ = {placement.begin(), placement.end()};
  lost_in_run_.clear();
  in_init_ = true;
  restarted_ = false;
  is_behind_broken_ = false;
  damages_since_init_ = 0;
}

void Model::begin_visit(const Nodes& placement) {
  ++run_;
  present_ = {placement.begin(), placement.end()};
  lost_in_run_.clear();
  restarted_ = false;
}

void Model::init_done(bool disturbed) {
  if (!in_init_) return;
  for (auto& [key, dataset] : datasets_) {
    if (!dataset.promised) continue;
    // A fault may have cost any of them, for this run, and the next dataset clears it away.
    const bool restored = !disturbed && survives(dataset);
    // What cannot be restored stays for the nodes that are away, which may come back: an output
    // for ever, a checkpoint until there is a newer one.
    dataset.waits = !restored && !has(dataset, flag_output);
    dataset.promised =
        restored || (!disturbed && (has(dataset, flag_output) || !may_be_superseded(key)));
    if (!restored) continue;
    if (std::exchange(dataset.exposed, false)) protect_over(dataset, placement_);
    settle_at(dataset, placement_);
  }
  in_init_ = false;
}

bool Model::may_be_superseded(int key) const {
  return std::any_of(datasets_.upper_bound(key), datasets_.end(), [this](const auto& newer) {
    return has(newer.second, flag_checkpoint) && may_be_offered(newer.second);
  });
}

void Model::end_run() {
  in_init_ = false;
  for (auto& [key, dataset] : datasets_) {
    if (dataset.state == State::begun) dataset.state = State::never;
    if (dataset.state != State::completing) continue;
    dataset.state = dataset.commit_begun ? State::maybe : State::never;
    dataset.exposed = is_protected_late(dataset);
    const bool stays = dataset.exposed && !is_behind_broken_;
    if (!dataset.commit_begun || !has(dataset, flag_checkpoint) || stays) continue;
    may_supersede(key);
  }
}

/// Older ones may have gone for its sake.
void Model::may_supersede(int key) {
  const Dataset& dataset = datasets_.at(key);
  for (auto& [older_key, older] : datasets_)
    if (older.waits && older.promised) older.superseded_by = key;
  for (const StoreSettings& store : shape_.settings.stores)
    if (store.path == dataset.store)
      for (Dataset* older : beyond_count(store.path, store.count)) older->superseded_by = key;
}

/// What is older may have gone for its sake, and does not come back. Nor does what had gone for the
/// sake of that.
void Model::forget_superseded(int key) {
  for (auto& [older_key, older] : datasets_) {
    if (older.superseded_by != key) continue;
    older.promised = false;
    forget_superseded(older_key);
  }
}

// --- writing ---

void Model::begin(int key, std::uint32_t flags) {
  if (datasets_.contains(key)) return;
  Dataset& dataset = datasets_[key];
  dataset.flags = flags;
  dataset.home = placement_;
  // The old one goes first; in which store is not known yet. Only a checkpoint takes its place.
  if (!shape_.settings.keep_old && is_counted(dataset))
    for (const StoreSettings& store : shape_.settings.stores)
      for (Dataset* older : beyond_count(store.path, store.count - 1)) older->promised = false;
  for (const StoreSettings& store : shape_.settings.stores) may_evict(store);
}

/// What Init has protected may have had more than COUNT beside it until here.
void Model::may_evict(const StoreSettings& store) {
  int newest = 0;
  int counted = 0;
  for (auto entry = datasets_.rbegin(); entry != datasets_.rend(); ++entry) {
    Dataset& dataset = entry->second;
    const bool may_be_usable =
        dataset.state == State::maybe || (dataset.promised && survives(dataset));
    if (dataset.store != store.path || !is_counted(dataset) || !may_be_usable) continue;
    if (counted++ == 0) newest = entry->first;
    if (counted > store.count) dataset.superseded_by = newest;
  }
}

void Model::place(int key, const std::string& folder, const std::string& store) {
  Dataset& dataset = datasets_.at(key);
  dataset.folder = folder;
  dataset.store = store;
}

void Model::complete_begins(int key) {
  Dataset& dataset = datasets_.at(key);
  if (dataset.state == State::begun) dataset.state = State::completing;
}

void Model::complete_returns(int key, bool success, bool disturbed) {
  Dataset& dataset = datasets_.at(key);
  if (dataset.state != State::completing) return;
  if (!success) {
    dataset.state = dataset.commit_begun ? State::withdrawn : State::never;
    dataset.may_return = disturbed;
    // The error may be of an older one, whose late protection failed: then this one stays.
    if (dataset.commit_begun && has(dataset, flag_checkpoint)) may_supersede(key);
    give_up_outputs(disturbed);
    return;
  }
  dataset.state = State::committed;
  // What is neither a checkpoint nor an output goes with the next dataset.
  dataset.promised = dataset.flags != 0;
  dataset.exposed = is_protected_late(dataset);
  dataset.run = run_;
  if (dataset.exposed) {
    for (const auto& [node, mount] : lost_in_run_)  // while the ranks were in Complete
      if (mount == memory_mount) wipe(dataset, node, dataset.store);
    if (is_behind_broken_ && has(dataset, flag_checkpoint)) may_supersede(key);
    return;
  }
  protect_over(dataset, placement_);
  supersede(dataset);
}

/// Older ones that go for its sake.
void Model::supersede(const Dataset& by) {
  if (has(by, flag_checkpoint))
    for (auto& [older_key, older] : datasets_)
      if (older.waits) older.promised = false;
  for (const StoreSettings& store : shape_.settings.stores)
    if (store.path == by.store)
      for (Dataset* older : beyond_count(store.path, store.count)) older->promised = false;
}

// --- what is protected behind the program ---

bool Model::is_protected_late(const Dataset& dataset) const {
  return shape_.ranks() > 1 && shape_.settings.keep_old && !shared(dataset) &&
         !dataset.store.empty() && level_of(dataset).behind;
}

void Model::protection_ended(int key) {
  Dataset& dataset = datasets_.at(key);
  if (!std::exchange(dataset.exposed, false)) return;
  protect_over(dataset, placement_);
  supersede(dataset);
}

void Model::protection_awaited(int key, Safety safety, bool disturbed) {
  if (safety == Safety::none) return protection_failed(key, disturbed);
  const Dataset& dataset = datasets_.at(key);
  // Of what no scheme protects, only the records say whether it has its checksums.
  const bool is_committed =
      is_behind_broken_ || std::any_of(dataset.commits.begin(), dataset.commits.end(),
                                       [](const auto& commits) { return commits.second > 1; });
  const bool no_scheme_protects_it = strength(dataset, placement_) == 0 && is_committed;
  if (!dataset.exposed || safety >= Safety::protected_ || no_scheme_protects_it)
    return protection_ended(key);
  if (!disturbed)
    throw Violation(fmt::format("(i) d{} is not protected after a call that waits for it", key));
}

void Model::program_changes(int key) {
  Dataset& dataset = datasets_.at(key);
  const auto has_committed = [](const auto& commits) { return commits.second > 1; };
  const auto ranks = std::count_if(dataset.commits.begin(), dataset.commits.end(), has_committed);
  if (ranks == shape_.ranks()) protection_ended(key);
  dataset.promised = false;
  forget_superseded(key);
}

void Model::protection_failed(int key, bool disturbed) {
  Dataset& dataset = datasets_.at(key);
  if (dataset.exposed && dataset.state == State::committed) give_up_exposed(dataset, disturbed);
}

void Model::give_up_exposed(Dataset& dataset, bool disturbed) {
  if (!disturbed) throw Violation(fmt::format("(i) {} was written and is gone", dataset.folder));
  dataset.state = State::withdrawn;
  dataset.may_return = true;
  dataset.promised = false;
}

/// A checkpoint goes: what was written after it must be protected, on all ranks.
void Model::check_eviction(const Dataset& evicted, bool disturbed) {
  if (in_init_) return;
  bool is_newer = false;
  for (auto& [key, dataset] : datasets_) {
    is_newer = is_newer || &dataset == &evicted;
    if (!is_newer || &dataset == &evicted || !dataset.exposed || dataset.run != run_) continue;
    // Nothing goes for the sake of what is neither a checkpoint nor an output, or is gone itself.
    if (dataset.flags == 0 || dataset.state == State::withdrawn || dataset.state == State::removed)
      continue;
    int ranks = 0;
    for (const auto& [rank, commits] : dataset.commits) ranks += commits < 2 ? 0 : 1;
    if (ranks == shape_.ranks())
      protection_ended(key);
    else if (evicted.promised && !disturbed && survives(evicted))
      throw Violation(
          fmt::format("(i) a checkpoint is evicted when {} ranks have committed the protected d{}",
                      ranks, key));
  }
}

/// Where a store is full, what the run cannot restore makes room, outputs too.
void Model::give_up_outputs(bool disturbed) {
  for (auto& [key, dataset] : datasets_)
    if (disturbed && dataset.promised && !survives(dataset)) dataset.promised = false;
}

/// Checkpoints that a store has no room for beside its `keep` newest, as far as the model knows.
std::vector<Model::Dataset*> Model::beyond_count(const std::string& store, int keep) {
  std::vector<Dataset*> beyond;
  int counted = 0;
  for (auto entry = datasets_.rbegin(); entry != datasets_.rend(); ++entry) {
    Dataset& dataset = entry->second;
    const bool evictable = dataset.store == store && dataset.state != State::never &&
                           dataset.state != State::removed && is_counted(dataset);
    if (evictable && ++counted > keep) beyond.push_back(&dataset);
  }
  return beyond;
}

// --- what is seen of the files ---

Model::Dataset* Model::by_folder(const std::string& folder) {
  for (auto& [key, dataset] : datasets_)
    if (dataset.folder == folder) return &dataset;
  return nullptr;
}

const Model::Dataset* Model::by_folder(const std::string& folder) const {
  return const_cast<Model*>(this)->by_folder(folder);
}

int Model::key_of(const std::string& name) const {
  for (const auto& [key, dataset] : datasets_)
    if (dataset.folder.ends_with("/" + name) && may_be_offered(dataset)) return key;
  return 0;
}

int Model::committed_key(const std::string& folder) const {
  for (const auto& [key, dataset] : datasets_)
    if (dataset.folder == folder && may_be_offered(dataset)) return key;
  return 0;
}

void Model::record_renamed(const std::string& folder, int rank) {
  Dataset* dataset = by_folder(folder);
  if (dataset == nullptr) return;
  ++dataset->commits[rank];
  if (dataset->state == State::completing) dataset->commit_begun = true;
  dataset->committed_divisions.insert(sets_over(*dataset, placement_));
  // New sets count from the first record that names them on; all parts are ready for them.
  moved(*dataset);
}

/// Copies at the old places are removed only once all is whole at the new ones.
void Model::record_removed(const std::string& folder, bool disturbed) {
  Dataset* dataset = by_folder(folder);
  if (dataset == nullptr) return;
  moved(*dataset);
  check_eviction(*dataset, disturbed);
  // A process that dies now must not find it again, though no call has returned that says so.
  const bool is_given_up =
      !in_init_ && dataset->promised && dataset->exposed && dataset->run == run_;
  if (is_given_up) give_up_exposed(*dataset, disturbed);
}

void Model::moved(Dataset& dataset) {
  if (!in_init_ || !dataset.promised) return;
  dataset.promised = survives(dataset);
  if (dataset.promised) settle_at(dataset, placement_);
}

void Model::settle_at(Dataset& dataset, const Nodes& home) {
  dataset.tolerates = std::min(dataset.tolerates, strength(dataset, home));
  if (dataset.home != home) dataset.divisions.insert(sets_over(dataset, home));
  dataset.home = home;
  dataset.wiped.clear();
  for (const auto& [node, mount] : lost_in_run_) wipe(dataset, node, mount);
}

// --- restart ---

bool Model::may_be_offered(const Dataset& dataset) const {
  switch (dataset.state) {
    case State::committed:
    case State::maybe:
      return true;
    case State::withdrawn:
      return dataset.may_return;
    default:
      return false;
  }
}

bool Model::must_come_back(const Dataset& dataset, const std::set<std::string>& present) const {
  if (!dataset.promised || !survives(dataset, present)) return false;
  const std::vector<int> newer = superseded_by(dataset);
  return std::all_of(newer.begin(), newer.end(),
                     [&](int key) { return survives(datasets_.at(key), present); });
}

/// What it may have gone for, and what that may have gone for.
std::vector<int> Model::superseded_by(const Dataset& dataset) const {
  std::vector<int> keys;
  for (int key = dataset.superseded_by; key != 0; key = datasets_.at(key).superseded_by)
    keys.push_back(key);
  return keys;
}

void Model::offered(int key, int below, bool disturbed) const {
  if (key != 0) {
    const auto found = datasets_.find(key);
    if (found == datasets_.end() || !may_be_offered(found->second))
      throw Violation(fmt::format("(d) d{} is offered, which was never committed", key));
    if ((found->second.flags & flag_checkpoint) == 0)
      throw Violation(fmt::format("(a) d{} is offered, which is no checkpoint", key));
  }
  if (disturbed) return;
  for (auto entry = datasets_.rbegin(); entry != datasets_.rend(); ++entry)
    if (entry->first > key && entry->first < below && has(entry->second, flag_checkpoint) &&
        must_come_back(entry->second, present_))
      throw Violation(
          fmt::format("(b) d{} should be offered, which was committed on {} and is "
                      "whole but for {} failure groups, or by its sets; instead: {}",
                      entry->first, fmt::join(entry->second.home, " "), entry->second.tolerates,
                      key == 0 ? "nothing" : fmt::format("d{}", key)));
}

void Model::restarted(int key, bool disturbed) {
  if (std::exchange(restarted_, true)) return;  // the first rank has said so
  Dataset& dataset = datasets_.at(key);
  if (dataset.state == State::maybe || !dataset.promised) {
    if (dataset.state == State::maybe || dataset.exposed) protect_over(dataset, dataset.home);
    dataset.exposed = false;
    dataset.state = State::committed;
    dataset.promised = true;
    settle_at(dataset, placement_);
  }
  if (disturbed) dataset.tolerates = 0;
  // All its blocks have been compared, and its records written where they were not whole.
  std::erase_if(dataset.damages, [this](const Damage& damage) {
    return damage.run < run_ && (damage.node.empty() || present_.contains(damage.node));
  });
}

void Model::rejected(int key) {
  Dataset& dataset = datasets_.at(key);
  dataset.state = State::withdrawn;
  dataset.may_return = true;  // on a node that is away now
  dataset.promised = false;
  forget_superseded(key);
}

bool Model::must_open(int key) const {
  return damages_since_init_ == 0 && must_come_back(datasets_.at(key), present_);
}

bool Model::must_find_something() const {
  return std::any_of(datasets_.begin(), datasets_.end(),
                     [this](const auto& entry) { return must_come_back(entry.second, present_); });
}

// --- what is taken away on purpose ---

bool Model::known_to_run(int key) const {
  const auto found = datasets_.find(key);
  if (found == datasets_.end() || found->second.superseded_by != 0) return false;
  return found->second.promised && survives(found->second);
}

/// An output that cannot be restored now, but of which a node of this run has a part.
bool Model::waits_here(const Dataset& dataset) const {
  if (!dataset.promised || !dataset.damages.empty()) return false;
  for (std::size_t rank = 0; rank < dataset.home.size(); ++rank)
    if (present_.contains(dataset.home[rank]) && !dataset.wiped.contains(static_cast<int>(rank)))
      return true;
  return false;
}

Model::Doomed Model::doom(int key, bool surely) {
  datasets_.at(key).promised = false;
  forget_superseded(key);
  return {key, surely};
}

std::vector<Model::Doomed> Model::remove_begins(int key) {
  const auto found = datasets_.find(key);
  if (found == datasets_.end() || !may_be_offered(found->second)) return {};
  return {doom(key, known_to_run(key) || waits_here(found->second))};
}

std::vector<Model::Doomed> Model::current_begins(int key) {
  const auto named = datasets_.find(key);
  if (named == datasets_.end() || !may_be_offered(named->second)) return {};
  // Current waits until what is exposed is protected, and then the named one may be gone.
  const bool stays = std::none_of(std::next(named), datasets_.end(),
                                  [](const auto& newer) { return newer.second.exposed; });
  std::vector<Doomed> doomed;
  for (auto newer = std::next(named); newer != datasets_.end(); ++newer)
    if (may_be_offered(newer->second) && is_counted(newer->second))
      doomed.push_back(
          doom(newer->first, stays && known_to_run(key) && known_to_run(newer->first)));
  return doomed;
}

std::vector<Model::Doomed> Model::purge_begins() {
  std::vector<Doomed> doomed;
  for (auto& [key, dataset] : datasets_)
    if (may_be_offered(dataset)) doomed.push_back(doom(key, true));
  return doomed;
}

void Model::taken_away(const Doomed& doomed, const WhatIsLeft& left, bool waits, bool disturbed) {
  Dataset& dataset = datasets_.at(doomed.key);
  // A node without power has back what was not synced, so data, but no record.
  const bool power_failed =
      std::any_of(lost_in_run_.begin(), lost_in_run_.end(),
                  [](const auto& lost) { return lost.second == memory_mount; });
  const bool still_there = left.record_here || (left.here && waits && !power_failed);
  if (doomed.surely && !disturbed && still_there)
    throw Violation(fmt::format("(h) d{} was taken away and is still there", doomed.key));
  dataset.state = State::withdrawn;
  dataset.may_return = left.record_here || left.elsewhere || disturbed;
  if (!dataset.may_return && waits) dataset.state = State::removed;
}

int Model::count_removed() const {
  return static_cast<int>(std::count_if(datasets_.begin(), datasets_.end(), [](const auto& entry) {
    return entry.second.state == State::removed;
  }));
}

// --- what happens to storage ---

void Model::lost(const std::string& node, const std::string& mount) {
  lost_in_run_.emplace(node, mount);
  for (auto& [key, dataset] : datasets_) {
    wipe(dataset, node, mount);
    // The node has been started anew: what was written there is not trusted any more.
    if (dataset.exposed && mount == memory_mount) wipe(dataset, node, dataset.store);
  }
}

void Model::wipe(Dataset& dataset, const std::string& node, const std::string& mount) {
  if (dataset.store != mount) return;
  for (std::size_t rank = 0; rank < dataset.home.size(); ++rank)
    if (dataset.home[rank] == node) dataset.wiped.insert(static_cast<int>(rank));
  std::erase_if(dataset.damages, [&](const Damage& damage) { return damage.node == node; });
}

void Model::unsynced_dropped() {
  for (auto& [key, dataset] : datasets_)
    if (dataset.commit_begun) dataset.may_return = true;  // its removal was not synced
}

bool Model::may_damage(const std::string& folder) const {
  const Dataset* dataset = by_folder(folder);
  if (dataset == nullptr || dataset->exposed) return false;
  // The Complete that has failed may have returned the error of an older one.
  if (dataset->state == State::withdrawn && is_protected_late(*dataset)) return false;
  return dataset->state != State::begun && dataset->state != State::completing;
}

void Model::damaged(const std::string& folder, int rank, const std::string& node) {
  by_folder(folder)->damages.push_back({node, rank, run_});
  ++damages_since_init_;
}

// --- the promise ---

const CheckpointSettings& Model::level_of(const Dataset& dataset) const {
  const auto& levels = shape_.settings.checkpoints;
  return *std::find_if(levels.begin(), levels.end(),
                       [&](const auto& level) { return level.store == dataset.store; });
}

std::uint64_t Model::group_of(const Dataset& dataset, const std::string& node) const {
  const std::string& group = level_of(dataset).group;
  return hash_of_name(group == "NODE" ? node : shape_.settings.node_groups.at(node).at(group));
}

std::vector<RedundancySet> Model::sets_over(const Dataset& dataset, const Nodes& placement) const {
  if (shared(dataset)) return {};
  std::vector<std::uint64_t> groups;
  for (const std::string& node : placement) groups.push_back(group_of(dataset, node));
  return form_sets(groups, level_of(dataset).set_size);
}

/// How many failure groups of a placement may be lost, whichever they are.
int Model::strength(const Dataset& dataset, const Nodes& placement) const {
  if (shared(dataset)) return 0;
  std::size_t smallest = placement.size();
  for (const RedundancySet& set : sets_over(dataset, placement))
    smallest = std::min(smallest, set.size());
  const auto asked = static_cast<int>(failures_asked(level_of(dataset)));
  return std::min(asked, static_cast<int>(smallest) - 1);
}

void Model::protect_over(Dataset& dataset, const Nodes& placement) const {
  dataset.tolerates = strength(dataset, placement);
  dataset.divisions = {sets_over(dataset, placement)};
}

/// By the promise of the scheme; how many copies there are in a set of that size, and how far away,
/// is as the library says.
bool Model::holds(const Dataset& dataset, const RedundancySet& set,
                  const std::set<int>& failed) const {
  const Encoding encoding = make_encoding(level_of(dataset), set, 1);
  const auto has_failed = [&](std::size_t member) { return failed.contains(set[member]); };
  std::size_t lost = 0;
  bool each_has_a_copy = true;
  for (std::size_t member = 0; member < set.size(); ++member) {
    if (!has_failed(member)) continue;
    ++lost;
    bool copied = false;
    for (std::uint32_t copy = 1; copy <= encoding.failures; ++copy)
      copied = copied || !has_failed((member + copy * encoding.hop) % set.size());
    each_has_a_copy = each_has_a_copy && copied;
  }
  return encoding.scheme == Scheme::partner ? each_has_a_copy : lost <= encoding.failures;
}

bool Model::every_set_holds(const Dataset& dataset, const std::set<int>& failed) const {
  return std::all_of(dataset.divisions.begin(), dataset.divisions.end(), [&](const auto& sets) {
    return std::all_of(sets.begin(), sets.end(),
                       [&](const auto& set) { return holds(dataset, set, failed); });
  });
}

bool Model::survives(const Dataset& dataset, const std::set<std::string>& present) const {
  std::set<std::uint64_t> groups;
  std::set<int> failed;
  for (std::size_t i = 0; i < dataset.home.size(); ++i) {
    const auto rank = static_cast<int>(i);
    const std::string home = shared(dataset) ? "" : dataset.home[i];
    // A damaged copy counts wherever it is: one that a node brings back, or that was moved, may be
    // chosen before the whole one, since both have a good record.
    const bool damaged =
        std::any_of(dataset.damages.begin(), dataset.damages.end(), [&](const Damage& damage) {
          return damage.rank == rank && (damage.node == home || present.contains(damage.node));
        });
    const bool away = !shared(dataset) && !present.contains(home);
    if (!damaged && !away && !dataset.wiped.contains(rank)) continue;
    if (shared(dataset)) return false;
    groups.insert(group_of(dataset, home));
    failed.insert(rank);
  }
  if (static_cast<int>(groups.size()) <= dataset.tolerates) return true;
  return dataset.tolerates > 0 && every_set_holds(dataset, failed);
}

int Model::count_of_store(const std::string& mount) const {
  for (const StoreSettings& store : shape_.settings.stores)
    if (store.path == mount) return store.count;
  return 0;
}

}  // namespace cairn::sim
