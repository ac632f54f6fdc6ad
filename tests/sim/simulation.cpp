#include "simulation.hpp"

#include <algorithm>
#include <exception>

#include "leftovers.hpp"
#include "offline.hpp"
#include "plan.hpp"
#include "run.hpp"

namespace cairn::sim {
namespace {

constexpr std::int64_t pause_us = 60'000'000;

class Simulation {
 public:
  Simulation(std::uint64_t seed, bool print, bool is_behind)
      : chance_(seed ^ 0x5bd1e995U),
        trace_(print),
        shape_(shape_of(seed, is_behind)),
        cluster_(shape_.nodes),
        model_(shape_),
        scheduler_(chance_.fork()),
        seam_(scheduler_, trace_),
        faults_(chance_.fork(), trace_),
        world_{shape_, cluster_, model_, scheduler_, seam_, faults_, chance_, trace_},
        plans_(shape_, chance_.fork(), is_behind) {}

  Outcome carry_out() {
    try {
      trace_.say("seed {}: {}", shape_.seed, shape_.describe());
      const int stormy = chance_.between(1, 4);
      for (int run = 0; run < stormy; ++run) {
        be_visited();
        carry_out(plans_.stormy());
      }
      carry_out(plans_.calm(1));
      be_visited();
      carry_out(plans_.calm(0));
      // Outputs are offered to nobody: this is how they are missed.
      derive_and_rebuild();
    } catch (const std::exception& broken) {
      outcome_.failure = fmt::format("run {}: {}", outcome_.runs, broken.what());
      trace_.say("failed: {}", outcome_.failure);
    }
    outcome_.removals = model_.count_removed();
    outcome_.trace_hash = trace_.hash();
    return outcome_;
  }

 private:
  static JobShape shape_of(std::uint64_t seed, bool is_behind) {
    JobShape shape = draw_shape(seed);
    if (is_behind) put_behind(shape);
    return shape;
  }

  void be_visited() {
    if (const auto visit = plans_.visit()) carry_out(*visit);
  }

  void carry_out(const PlannedRun& planned) {
    scheduler_.pass_time_us(pause_us);
    befall(planned);
    if (chance_.one_in(3)) derive_and_rebuild();
    ++outcome_.runs;
    trace_.say("run {}: {}", outcome_.runs, describe(planned.run));
    Run run(world_, planned.run);
    const bool is_of_others =
        planned.run.visit == Visit::other_ranks || planned.run.visit == Visit::other_ranks_fresh;
    const auto recorded = is_of_others ? recorded_parts(world_) : std::set<std::string>{};
    const bool whole = run.carry_out();
    check_kept(world_, recorded);
    outcome_.refusals += run.refused() ? 1 : 0;
    outcome_.calls += seam_.calls();
    outcome_.crashes += whole ? 0 : 1;
    outcome_.restarts += model_.restarted_in_run() ? 1 : 0;
    if (planned.calm) check_leftovers(world_, planned.run);
  }

  void derive_and_rebuild() {
    const DerivedCounts found = check_offline_rebuild(world_);
    outcome_.derived.protected_ += found.protected_;
    outcome_.derived.lost += found.lost;
  }

  /// What happens while no run is alive.
  void befall(const PlannedRun& planned) {
    for (const std::string& node : planned.lost_before) {
      trace_.say("node {} is replaced by an empty one", node);
      for (const char* mount : {memory_mount, disk_mount}) {
        cluster_.volume(node, mount).wipe();
        model_.lost(node, mount);
      }
    }
    for (const std::string& node : planned.rebooted_before) {
      trace_.say("node {} is rebooted", node);
      cluster_.volume(node, memory_mount).wipe();
      model_.lost(node, memory_mount);
    }
    for (int i = 0; i < planned.damages_before; ++i) Run::damage_something(world_);
  }

  Chance chance_;
  Trace trace_;
  const JobShape shape_;
  Cluster cluster_;
  Model model_;
  Scheduler scheduler_;
  Seam seam_;
  Faults faults_;
  World world_;
  Planner plans_;
  Outcome outcome_;
};

}  // namespace

Outcome simulate(std::uint64_t seed, bool print) {
  return Simulation(seed, print, false).carry_out();
}

Outcome simulate_behind(std::uint64_t seed, bool print) {
  return Simulation(seed, print, true).carry_out();
}

}  // namespace cairn::sim
