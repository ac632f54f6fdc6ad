// Draws what the ranks of a simulated program do that knows nothing of Cairn.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "wrapped_program.hpp"

namespace cairn::sim {

/// The same in all runs of a job.
struct ProgramShape {
  ProgramKind kind;
  Naming naming = Naming::numbers;
  std::vector<int> files;  ///< of each step, by rank
  bool renames = false;
  bool removes = false;
  bool is_refused = false;  ///< now and then
  bool is_slow = false;     ///< the job has time for each step before the next one begins
};
/// `speed`: apart, so that the rest of a seed does not depend on it.
ProgramShape draw_program(int ranks, Chance& chance, Chance speed);

/// The steps of a run after step `restored` (0: none), of which each rank finds these files.
ProgramPlan draw_steps(const ProgramShape& shape, int restored,
                       const std::vector<std::set<int>>& there, bool is_calm, Chance& chance);

/// How many actions each rank has in each step.
std::vector<std::map<int, int>> count_actions(const ProgramPlan& plan);

}  // namespace cairn::sim
