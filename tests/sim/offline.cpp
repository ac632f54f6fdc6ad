#include "offline.hpp"

#include <algorithm>

#include "recovery/rebuild_sets.hpp"
#include "recovery/written.hpp"
#include "state_watch.hpp"

namespace cairn::sim {
namespace {

constexpr const char* spare_mount = "/rebuilt";

class OfflineRebuild {
 public:
  explicit OfflineRebuild(World& world) : world_(world) {
    const std::string job = world.cluster.job_folder(world.shape.settings);
    mounts_[spare_mount] = std::make_shared<Volume>(Volume::Medium::memory);
    for (const Place& place : world.cluster.places()) {
      const std::string mount = fmt::format("/left.{}.{}", place.node, place.mount.substr(1));
      mounts_[mount] = std::make_shared<Volume>(place.volume->copy());
      if (place.volume->find(job)) roots_.push_back(mount + job);
    }
    files_ = make_memory_files(mounts_, [this] { return world_.scheduler.now_us() * 1000; });
  }

  DerivedCounts carry_out() {
    settle_on_nodes();
    const auto found = find_remains(*files_, roots_);
    if (!found) throw Violation(fmt::format("(e) {}", found.error().text));
    std::set<int> whole;
    std::map<int, CacheState> derived;
    for (const Remains& remains : *found) {
      if (remains.ranks == 0) continue;
      const int key = world_.model.key_of(name_of(remains));
      const CacheState state = derive(remains);
      const bool is_rebuilt = rebuild(remains);
      if (is_rebuilt ? state == CacheState::lost : state == CacheState::protected_)
        throw Violation(fmt::format("(j) {} is derived to be {}, and its rebuild {}",
                                    name_of(remains), cairn::name_of(state),
                                    is_rebuilt ? "succeeds" : "fails"));
      if (is_rebuilt) whole.insert(key);
      derived[key] = state;
    }
    world_.model.rebuilt_offline(whole);
    world_.model.derived_offline(derived,
                                 [this](const std::string& folder) { return ranks_in(folder); });
    const auto count = [&derived](CacheState state) {
      return static_cast<int>(std::count_if(derived.begin(), derived.end(),
                                            [&](const auto& one) { return one.second == state; }));
    };
    return {count(CacheState::protected_), count(CacheState::lost)};
  }

 private:
  static std::string name_of(const Remains& remains) {
    return fmt::format("dataset.{}.{}", remains.number, text_of(remains.uuid));
  }

  /// As a scavenge does on each node: what has no checksums yet gets them if it is as it was
  /// written.
  void settle_on_nodes() {
    std::map<std::string, Mounts> of_nodes;
    for (const auto& [mount, volume] : mounts_) of_nodes[volume->node()].emplace(mount, volume);
    for (const auto& [node, mounts] : of_nodes) {
      const auto files =
          make_memory_files(mounts, [this] { return world_.scheduler.now_us() * 1000; });
      std::vector<std::string> roots;
      for (const std::string& root : roots_)
        if (mounts.contains(root.substr(0, root.find('/', 1)))) roots.push_back(root);
      auto found = find_remains(*files, roots, RecordDetail::all);
      if (!found) throw Violation(fmt::format("(e) {}", found.error().text));
      for (Remains& remains : *found)
        for (HeldPart& part : remains.parts)
          if (!part.own.empty() && part.own[0].record.exposure)
            (void)settle_written(*files, part, part.own[0].record.encoding.generation);
    }
  }

  /// For a run with as many ranks as wrote it. Its ranks take turns in an order of their own, so
  /// that what a seed did before it still does.
  CacheState derive(const Remains& remains) {
    Trace quiet(false);
    Scheduler scheduler{Chance(world_.shape.seed)};
    Seam seam(scheduler, quiet);
    SetTeams teams;
    teams.sets = 1;
    teams.run = [&](int ranks, const RankMain& rank_main) {
      Postboxes boxes(ranks, seam, Chance(world_.shape.seed));
      seam.begin(ranks);
      scheduler.run(ranks, [&](int rank) {
        ScheduledCommunicator comm(boxes, rank);
        rank_main(comm);
      });
    };
    Settings settings;
    settings.encode_bytes = world_.shape.settings.encode_bytes;
    const Log silent([](Severity, const std::string&) {});
    const CacheState derived = inspect_for_run(
                                   *files_, remains, remains.ranks, settings, true, silent,
                                   [](int, const FoundPart&) {}, teams)
                                   .state;
    const CacheState recorded = recorded_state(remains);
    if (!may_be_derived(recorded, derived))
      throw Violation(fmt::format("(j) {} is derived to be {}, and its records say {}",
                                  name_of(remains), cairn::name_of(derived),
                                  cairn::name_of(recorded)));
    return derived;
  }

  /// Those of which any node has a directory of this dataset.
  std::set<int> ranks_in(const std::string& folder) const {
    std::set<int> ranks;
    for (const Place& place : world_.cluster.places()) {
      if (!folder.starts_with(place.mount + "/")) continue;
      const InodePtr dataset = place.volume->find(folder.substr(place.mount.size()));
      if (!dataset) continue;
      for (const auto& [name, part] : dataset->names)
        if (name.starts_with("rank.")) ranks.insert(std::stoi(name.substr(5)));
    }
    return ranks;
  }

  /// True if it is whole now, and then all its bytes are right.
  bool rebuild(const Remains& remains) {
    Settings settings;
    settings.encode_bytes = world_.shape.settings.encode_bytes;
    const auto files = make_hooked_files(*files_, [this](const FileOperation& operation) {
      if (in_team_) world_.seam.pass(operation.name, operation.path, operation.to);
      return Status{};
    });
    const Log log([&](Severity, const std::string& text) {
      world_.trace.say("offline somebody says: {}", text);
    });
    SetTeams teams;
    teams.sets = 1;
    teams.run = [this](int ranks, const RankMain& rank_main) { run_team(ranks, rank_main); };
    const Rebuild rebuilt = rebuild_remains(*files, remains, spare_mount, settings, log, teams);
    world_.trace.say("offline {}: {}", name_of(remains),
                     rebuilt.reason.empty() ? "whole" : rebuilt.reason);
    if (rebuilt.outcome != Rebuild::Outcome::whole) return false;
    for (std::size_t rank = 0; rank < rebuilt.folders.size(); ++rank)
      read_back(remains, static_cast<int>(rank), rebuilt.folders[rank]);
    return true;
  }

  /// One set.
  void run_team(int ranks, const RankMain& rank_main) {
    Postboxes boxes(ranks, world_.seam, world_.chance.fork());
    world_.seam.begin(ranks);
    in_team_ = true;
    world_.scheduler.run(ranks, [&](int rank) {
      ScheduledCommunicator comm(boxes, rank);
      rank_main(comm);
    });
    in_team_ = false;
  }

  void read_back(const Remains& remains, int rank, const RankFolder& folder) {
    const int key = world_.model.key_of(name_of(remains));
    if (key == 0)
      throw Violation(
          fmt::format("(e) {} is rebuilt, which was never committed", name_of(remains)));
    for (const FileShape& file : files_of(world_.shape, key, rank)) {
      std::string relative;
      lies_below(file.name, world_.shape.settings.prefix, &relative);
      const auto content = read_file(*files_, folder.file(relative), file.bytes + 1);
      if (!content || *content != content_of(world_.shape, key, rank, file))
        throw Violation(
            fmt::format("(e) d{}: {} of rank {} is not as it was written", key, relative, rank));
    }
  }

  World& world_;
  Mounts mounts_;
  std::vector<std::string> roots_;
  std::unique_ptr<Files> files_;
  bool in_team_ = false;  ///< ranks take turns at each call
};

}  // namespace

DerivedCounts check_offline_rebuild(World& world) { return OfflineRebuild(world).carry_out(); }

}  // namespace cairn::sim
