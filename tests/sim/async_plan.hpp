// How copies in the background go on in a simulated job, and how its processes die meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "background.hpp"
#include "config/settings.hpp"
#include "faults.hpp"

namespace cairn::sim {

/// Of one run.
struct AsyncPlan {
  bool is_on = false;  ///< SCR_FLUSH_ASYNC
  Stepping stepping;
  int more_datasets = 0;
  std::int64_t computes_us = 0;  ///< after each dataset
  /// What ends the run ends one process first, or those of its node; then the others go on for so
  /// many calls.
  bool one_dies_first = false;
  bool its_node_is_lost = false;
  std::uint64_t others_live_for = 0;
  /// Bits flip in what is being copied: so many calls after the plan of the first copy is made.
  std::vector<std::uint64_t> damages;
  int damages_before = 0;  ///< such damage, before the run begins
  /// Before it: the nodes of dead runs are drained. The first time they may all be killed.
  int drains = 0;
  std::uint64_t first_drain_ends_after = 0;
};

class AsyncPlanner {
 public:
  /// Off: draws nothing.
  AsyncPlanner(std::uint64_t seed, bool is_on)
      : chance_(seed ^ 0x452821e6U),
        drains_(seed ^ 0xbe5466cfU),
        leaves_(seed ^ 0x34e90c6cU),
        behind_(seed ^ 0xc0ac29b7U),
        rot_(seed ^ 0xb5470917U),
        is_on_(is_on),
        rots_(is_on && rot_.one_in(4)) {}

  bool is_on() const { return is_on_; }
  /// In half of the jobs checkpoints are protected behind the program: then the newest of so many
  /// has no checksums for a while.
  bool may_be_exposed(int key, int count) const { return is_behind_ && key + 1 >= count; }
  Chance of_behind() { return behind_.fork(); }

  /// Some of these nodes, or all, all at the same time.
  std::vector<std::string> draw_nodes_to_drain(std::vector<std::string> nodes) {
    drains_.shuffle(nodes);
    if (drains_.one_in(3)) nodes.resize(1 + drains_.below(nodes.size()));
    return nodes;
  }
  Chance& chance() { return chance_; }
  Chance& drains() { return drains_; }

  void draw_settings(Settings& settings) {
    if (!is_on_) return;
    settings.flush_async = true;
    is_behind_ = behind_.one_in(2);
    for (CheckpointSettings& level : settings.checkpoints) level.behind = is_behind_;
    if (chance_.one_in(3)) settings.async_bytes_per_s = std::uint64_t{1} << chance_.between(16, 24);
  }

  AsyncPlan calm(Settings& settings) {
    AsyncPlan plan;
    if (!is_on_) return plan;
    plan.is_on = settings.flush_async = !chance_.one_in(8);
    plan.stepping.is_possible = !chance_.one_in(10);
    plan.stepping.late_us = std::uint64_t{1} << chance_.between(0, 14);
    plan.stepping.seed = chance_.next();
    settings.flush_at_end = FlushAtEnd::wait;  // the last run leaves nothing unfinished
    if (drains_.one_in(3)) plan.drains = drains_.between(1, 2);
    if (drains_.one_in(2)) plan.first_drain_ends_after = 1 + drains_.of_any_size_below(2000);
    if (chance_.one_in(2)) plan.computes_us = std::int64_t{1} << chance_.between(8, 21);
    return plan;
  }

  AsyncPlan stormy(Settings& settings, std::uint64_t ranks) {
    AsyncPlan plan = calm(settings);
    if (!is_on_) return plan;
    if (leaves_.one_in(3)) settings.flush_at_end = FlushAtEnd::leave;
    if (chance_.one_in(2)) plan.more_datasets = chance_.between(1, 3);
    plan.one_dies_first = chance_.one_in(3);
    plan.its_node_is_lost = chance_.one_in(2);
    plan.others_live_for = 1 + chance_.of_any_size_below(600 * ranks);
    if (chance_.one_in(6)) plan.damages.resize(1 + chance_.of_any_size_below(4));
    if (rots_ && rot_.one_in(2)) plan.damages_before = rot_.between(1, 4);
    for (std::uint64_t& calls : plan.damages) calls = 1 + chance_.of_any_size_below(300 * ranks);
    return plan;
  }

  /// Errors that last while a copy is tried again and again, or come one by one.
  void draw_faults(FaultPlan& faults, std::uint64_t ranks) {
    if (!is_on_ || !chance_.one_in(5)) return;
    faults.from = 200 * ranks + chance_.of_any_size_below(600 * ranks);
    faults.to = faults.from + chance_.of_any_size_below(2000 * ranks);
    faults.one_in = std::uint64_t{1} << chance_.between(0, 5);
  }

 private:
  Chance chance_;
  Chance drains_;
  Chance leaves_;  ///< whether SCR_Finalize leaves copies to a drain
  Chance behind_;
  Chance rot_;
  const bool is_on_;
  const bool rots_;  ///< what the caches have is damaged between the runs
  bool is_behind_ = false;
};

}  // namespace cairn::sim
