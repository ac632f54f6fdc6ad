#include "run.hpp"

#include <algorithm>
#include <utility>

#include "rank_program.hpp"

namespace cairn::sim {

Run::Run(World& world, const RunPlan& plan)
    : world_(world),
      plan_(plan),
      boxes_(static_cast<int>(plan.nodes.size()), world.seam, world.chance.fork()),
      behind_(static_cast<int>(plan.nodes.size()), world.seam, Chance(world.shape.seed),
              Postboxes::Owner::helper) {
  for (int rank = 0; rank < boxes_.size(); ++rank) helpers_.emplace_back(world.scheduler, rank);
}

bool Run::carry_out() {
  const int ranks = boxes_.size();
  world_.seam.begin(ranks);
  world_.faults.begin(plan_.faults);
  if (plan_.visit == Visit::none)
    world_.model.begin_run(plan_.nodes);
  else
    world_.model.begin_visit(plan_.nodes);
  if (plan_.purge) doomed_ = world_.model.purge_begins();
  run_ranks(world_.scheduler, helpers_, [this](int rank) {
    RankProgram(*this, rank).carry_out();
    ++finished_;
  });
  for (const Place& place : world_.cluster.places()) place.volume->lift_limit();
  world_.model.end_run();
  const bool whole = finished_ == ranks;
  if (whole && boxes_.undelivered() + (plan_.breaks_behind ? 0 : behind_.undelivered()) > 0)
    throw Violation(
        fmt::format("{} messages were sent that nobody received", boxes_.undelivered()));
  return whole;
}

void Run::compare(const std::string& step, const std::string& verdict) {
  verdicts_.compare(step, verdict);
}

bool Run::disturbed_since(std::uint64_t reading) const {
  return world_.faults.lasting() || world_.faults.count() != reading;
}

// --- what happens, and when ---

void Run::enter_phase(int phase) {
  if (phase <= phase_) return;
  phase_ = phase;
  arm_all(phase);
}

void Run::arm_all(int phase) {
  if (plan_.crash != Crash::none) arm(plan_.crash_at, phase, [this] { crash(); });
  for (const Moment& damage : plan_.damages)
    arm(damage, phase, [this] {
      // Nobody can protect what the application is reading, or what has not been read once.
      if (reading_ == 0) damage_something(world_);
    });
  if (plan_.breaks_behind)
    arm(plan_.breaks_at, phase, [this] {
      world_.model.behind_breaks();
      behind_.break_off();
    });
  if (plan_.full) arm(plan_.full_from, phase, [this] { fill_a_store(); });
}

// --- what is taken away on purpose ---

void Run::named_call_begins(std::size_t index) {
  if (index < named_calls_begun_) return;
  named_calls_begun_ = index + 1;
  const NamedCall& call = plan_.named_calls[index];
  doomed_ = call.kind == NamedCall::Kind::remove ? world_.model.remove_begins(call.key)
                                                 : world_.model.current_begins(call.key);
  arm_all(first_named_phase - static_cast<int>(index));
}

void Run::named_call_returns(std::size_t index) {
  if (index < named_calls_returned_) return;
  named_calls_returned_ = index + 1;
  const bool waits = plan_.named_calls[index].kind == NamedCall::Kind::remove;
  for (const Model::Doomed& doomed : std::exchange(doomed_, {}))
    world_.model.taken_away(doomed, what_is_left_of(doomed.key), waits, disturbed_since(0));
}

void Run::purge_returns() {
  for (const Model::Doomed& doomed : std::exchange(doomed_, {}))
    world_.model.taken_away(doomed, what_is_left_of(doomed.key), true, disturbed_since(0));
}

WhatIsLeft Run::what_is_left_of(int key) const {
  WhatIsLeft left;
  const std::string& folder = world_.model.folder_of(key);
  for (const Place& place : world_.cluster.places()) {
    if (!folder.starts_with(place.mount + "/")) continue;
    const InodePtr dataset = place.volume->find(folder.substr(place.mount.size()));
    if (!dataset) continue;
    const bool here = place.node.empty() || std::find(plan_.nodes.begin(), plan_.nodes.end(),
                                                      place.node) != plan_.nodes.end();
    (here ? left.here : left.elsewhere) = true;
    for (const auto& [name, part] : dataset->names)
      if (here && part->names.contains("record")) left.record_here = true;
  }
  return left;
}

void Run::arm(const Moment& moment, int phase, std::function<void()> event) {
  if (moment.phase == phase) world_.seam.after(moment.calls, std::move(event));
}

void Run::end_all_within(int calls) {
  for (int rank = 0; rank < boxes_.size(); ++rank)
    world_.seam.end_after(rank, calls == 0 ? 0 : world_.chance.between(0, calls));
}

/// The rank that runs is the first victim.
void Run::crash() {
  constexpr int longest_agony_calls = 60;
  const int victim = world_.scheduler.current();
  const std::string node = plan_.nodes[static_cast<std::size_t>(victim)];
  world_.trace.say("crash {} of rank {} on {}", static_cast<int>(plan_.crash), victim, node);
  const bool at_once = plan_.crash == Crash::job || plan_.crash == Crash::power;
  end_all_within(at_once || world_.chance.one_in(2) ? 0 : longest_agony_calls);
  const bool whole_node = plan_.crash == Crash::node || plan_.crash == Crash::storage;
  for (int rank = 0; rank < boxes_.size(); ++rank)
    if (at_once || rank == victim ||
        (whole_node && plan_.nodes[static_cast<std::size_t>(rank)] == node))
      world_.scheduler.end(rank);
  if (plan_.crash == Crash::node) lose_power(node);
  if (plan_.crash == Crash::power)
    for (const Place& place : world_.cluster.places())
      if (place.mount == disk_mount) lose_power(place.node);
  if (plan_.crash == Crash::power)
    world_.cluster.volume("", shared_mount).power_failure(world_.chance);
  if (plan_.crash == Crash::storage)
    for (const char* mount : {memory_mount, disk_mount}) {
      world_.cluster.volume(node, mount).wipe();
      world_.model.lost(node, mount);
    }
}

void Run::lose_power(const std::string& node) {
  for (const char* mount : {memory_mount, disk_mount})
    world_.cluster.volume(node, mount).power_failure(world_.chance);
  world_.model.lost(node, memory_mount);
  world_.model.unsynced_dropped();
}

void Run::fill_a_store() {
  const std::string mount = world_.chance.pick(world_.shape.settings.stores).path;
  Volume& volume = world_.cluster.volume(world_.chance.pick(plan_.nodes), mount);
  volume.limit_free_bytes(world_.chance.of_any_size_below(20000));
  world_.faults.set_full(true);
  world_.seam.after(plan_.full_calls, [this, &volume] {
    volume.lift_limit();
    world_.faults.set_full(false);
  });
}

namespace {

/// A file of a dataset in a cache: .../dataset.N.U/rank.R/...
struct CachedFile {
  Place place;
  std::string path;
  std::string folder;  ///< the dataset's
  int rank = 0;
};

std::vector<CachedFile> find_cached_files(World& world) {
  std::vector<CachedFile> found;
  for (const Place& place : world.cluster.places())
    for (const std::string& path : place.volume->files_below()) {
      const auto rank_at = path.find("/rank.");
      if (rank_at == std::string::npos || path.find("/dataset.") > rank_at) continue;
      const std::string folder = place.mount + path.substr(0, rank_at);
      if (world.model.may_damage(folder))
        found.push_back({place, path, folder, std::stoi(path.substr(rank_at + 6))});
    }
  return found;
}

}  // namespace

void Run::damage_something(World& world) {
  const std::vector<CachedFile> files = find_cached_files(world);
  if (files.empty()) return;
  const CachedFile& file = world.chance.pick(files);
  std::string what = "removed";
  // Nobody removes files while they are being rebuilt: that costs the dataset for this run, and no
  // more is promised.
  if (world.chance.one_in(6) && !world.model.in_init()) {
    file.place.volume->lose(file.path);
  } else {
    what = damage(*file.place.volume->find(file.path), world.chance);
  }
  world.trace.say("damage on {}: {}{} {}", file.place.node, file.place.mount, file.path, what);
  world.model.damaged(file.folder, file.rank, file.place.node);
}

Status Run::observe(const FileOperation& operation, bool may_fail) {
  // A job that flushes nothing would never read the id again (prefix_job.cpp has that).
  const bool of_prefix = operation.path.starts_with(prefix_mount);
  if (may_fail && !of_prefix) CAIRN_TRY(world_.faults.at(operation));
  const std::string path(operation.name == "rename" ? operation.to : operation.path);
  if (name_of_path(path) != "record") return {};
  const std::string dataset = folder_of(folder_of(path));
  if (operation.name == "rename" && operation.path.ends_with(".new"))
    world_.model.record_renamed(dataset, world_.scheduler.current());
  if (operation.name == "remove_file" && exists(path))
    world_.model.record_removed(dataset, disturbed_since(0));
  return {};
}

/// On the node of the rank that runs.
bool Run::exists(const std::string& path) const {
  const std::string& node = plan_.nodes[static_cast<std::size_t>(world_.scheduler.current())];
  for (const auto& [mount, volume] : world_.cluster.mounts_of(node))
    if (path.starts_with(mount + "/")) return volume->find(path.substr(mount.size())) != nullptr;
  return false;
}

}  // namespace cairn::sim
