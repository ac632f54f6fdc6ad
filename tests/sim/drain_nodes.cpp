#include "drain_nodes.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "memory_files.hpp"
#include "prefix/contents.hpp"
#include "recovery/dead_caches.hpp"
#include "scavenge/drain.hpp"
#include "simulated_clock.hpp"

namespace cairn::sim {
namespace {

class Drains {
 public:
  Drains(const DrainWorld& world, const std::vector<Settings>& jobs, const DrainPlan& plan,
         Chance& chance)
      : world_(world), jobs_(jobs), plan_(plan), chance_(chance), folder_{jobs.front().prefix} {}

  bool carry_out() {
    const auto nodes = static_cast<int>(plan_.nodes.size());
    bool is_killed = false;
    find_open_plans();
    world_.seam.begin(nodes);
    world_.watch.begin_run();
    if (plan_.ends_after > 0)
      world_.seam.after(plan_.ends_after, [&] {
        is_killed = true;
        kill();
      });
    world_.scheduler.run(nodes, [&](int node) { be_drain(plan_.nodes[at(node)]); });
    world_.watch.look();
    if (!is_killed) check_copied();
    return !is_killed;
  }

 private:
  static std::size_t at(int node) { return static_cast<std::size_t>(node); }

  void kill() {
    if (plan_.killed == DrainPlan::all) {
      world_.trace.say("all drains end");
      world_.scheduler.end_all();
      return;
    }
    world_.trace.say("the drain of {} ends", plan_.nodes[at(plan_.killed)]);
    world_.scheduler.end(plan_.killed);
  }

  /// Those that no later owner has: no run begins while the nodes are drained.
  void find_open_plans() {
    const auto files = make_memory_files({{folder_.prefix, world_.prefix}}, [] { return 0; });
    const auto begun = begun_folders(*files, folder_);
    if (!begun) throw Violation(fmt::format("(g) {}", begun.error().text));
    for (const BegunFolder& one : *begun)
      if (is_open(one)) open_.insert(one.uuid);
  }

  /// Else a later owner has closed its epoch, and may have begun the same dataset anew.
  bool is_open(const BegunFolder& one) const {
    return one.path.starts_with(folder_.epoch(one.epoch) + "/");
  }

  void be_drain(const std::string& node) {
    Mounts mounts = world_.cluster.mounts_of(node);
    mounts[folder_.prefix] = world_.prefix;
    const auto memory =
        make_memory_files(mounts, [this] { return world_.scheduler.now_us() * 1000; });
    const auto files = make_hooked_files(*memory, [&](const FileOperation& operation) -> Status {
      if (std::uncaught_exceptions() > 0) return fail(Code::io, "the process has ended");
      world_.seam.pass(operation.name, operation.path, operation.to);
      world_.watch.see(operation);
      return {};
    });
    for (Settings settings : jobs_) {
      settings.node_name = node;
      drain_job(*files, settings);
    }
  }

  void drain_job(Files& files, const Settings& settings) {
    SimulatedClock clock(world_.seam, chance_);
    std::vector<std::string> unreadable;
    const auto held = find_remains(files, caches_on_node(files, settings).used,
                                   RecordDetail::outline, &unreadable);
    if (!held) throw Violation(fmt::format("(g) {}", held.error().text));
    const auto background = make_foreground();
    const DrainOptions options{{{*background, 1, settings.io_piece_bytes}, 0, 0}, true};
    const auto drained = drain(files, clock, folder_, *held, options, nullptr);
    if (!drained) throw Violation(fmt::format("(g) a drain fails: {}", drained.error().text));
    for (const DrainedDataset& one : *drained) note(one, settings.node_name);
  }

  void note(const DrainedDataset& one, const std::string& node) {
    world_.trace.say("{} has drained {} parts of {}, {} are missing{}", node, one.ranks.size(),
                     one.dataset.name, one.missing.size(),
                     one.failure ? "" : ": " + one.failure.error().text);
    if (!open_.contains(one.dataset.uuid))
      throw Violation(fmt::format("(g) {} drains {}, of which a later owner has the plan", node,
                                  one.dataset.name));
    // What is damaged in one cache may be whole in another.
    if (one.failure)
      held_[one.dataset.uuid].insert(one.ranks.begin(), one.ranks.end());
    else if (!is_damage(one.failure.error().code))
      throw Violation(fmt::format("(g) {} cannot copy its parts of {}: {}", node, one.dataset.name,
                                  one.failure.error().text));
  }

  void check_copied() const {
    const auto files = make_memory_files({{folder_.prefix, world_.prefix}}, [] { return 0; });
    const auto begun = begun_folders(*files, folder_);
    if (!begun) throw Violation(fmt::format("(g) {}", begun.error().text));
    for (const BegunFolder& one : *begun) {
      const auto held = held_.find(one.uuid);
      if (!is_open(one) || one.state != PrefixState::planned || held == held_.end()) continue;
      const auto markers = names_in(*files, DatasetFolder::markers(one.path));
      const auto done = numbers_after("0.", markers.value_or(std::vector<std::string>{}));
      for (const int rank : held->second)
        if (std::find(done.begin(), done.end(), static_cast<std::uint64_t>(rank)) == done.end())
          throw Violation(fmt::format("(b) a drain has not copied the part of rank {}", rank));
      const auto plan = read_dataset_record(*files, one.path);
      if (plan && *plan && done.size() == (*plan)->info.ranks)
        throw Violation(fmt::format("(b) all parts of {} are done, and no drain has published it",
                                    (*plan)->info.name));
    }
  }

  const DrainWorld& world_;
  const std::vector<Settings>& jobs_;
  const DrainPlan& plan_;
  Chance& chance_;
  const PrefixFolder folder_;
  std::set<Uuid> open_;
  std::map<Uuid, std::set<int>> held_;  ///< ranks whose parts a drain had, and copied as it said
};

}  // namespace

bool drain_nodes(const DrainWorld& world, const std::vector<Settings>& jobs, const DrainPlan& plan,
                 Chance& chance) {
  world.trace.say("{} nodes are drained, until {}", plan.nodes.size(), plan.ends_after);
  return Drains(world, jobs, plan, chance).carry_out();
}

}  // namespace cairn::sim
