// Draws what the runs of a job do, and what is done to them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run.hpp"

namespace cairn::sim {

struct PlannedRun {
  RunPlan run;
  bool calm = false;  ///< nothing is done to it
  std::vector<std::string> lost_before;
  std::vector<std::string> rebooted_before;
  int damages_before = 0;
};

class Planner {
 public:
  /// `is_behind`: of jobs whose checkpoints are protected behind the program.
  Planner(const JobShape& shape, Chance chance, bool is_behind)
      : shape_(shape),
        is_behind_(is_behind),
        behind_(shape.seed ^ 0x3707344aU),
        changes_(shape.seed ^ 0x13198a2eU),
        chance_(chance),
        rare_(Chance(chance).fork().fork()),
        placement_(shape.first_placement) {}

  PlannedRun stormy();
  /// Now and then one that must leave all as it is.
  std::optional<PlannedRun> visit();
  /// The last runs: each must restart, and write `datasets`.
  PlannedRun calm(int datasets);

 private:
  RunPlan draw_run(int datasets);
  DatasetPlan draw_dataset();
  DatasetPlan draw_what_is_no_checkpoint();
  Moment draw_moment(const RunPlan& run);
  void draw_crash(RunPlan& run);
  void draw_faults(RunPlan& run);
  void draw_weather(PlannedRun& planned);
  void draw_named_calls(RunPlan& run);
  Nodes draw_others();

  void draw_behind(RunPlan& run);
  void draw_change(RunPlan& run);

  const JobShape& shape_;
  const bool is_behind_;
  Chance behind_;
  Chance changes_;
  Chance chance_;
  /// What came later is drawn apart, so that what a seed did before it still does.
  Chance rare_;
  Nodes placement_;
  bool first_ = true;
  int last_key_ = 0;
};

std::string describe(const RunPlan& run);

}  // namespace cairn::sim
