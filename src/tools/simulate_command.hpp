// cairn simulate: which losses of nodes a job would survive, before it is started.
#pragma once

#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "tools/losses.hpp"
#include "tools/planned_job.hpp"

namespace cairn {

struct SimulateCommand {
  bool json = false;
  PlannedJob job;
  /// "any K [GROUP]", "rate P [GROUP]" or names of nodes with commas between.
  std::string lose;
  std::uint64_t seed = 1;
  int samples = 100'000;  ///< where there is too much to count
};

/// Which groups may be lost, and how; without `group`, those over which the sets are spread.
struct RandomLoss {
  LossModel model;
  std::string group;
};
using NamedLoss = std::vector<std::string>;

/// Fails with bad_argument.
Result<std::variant<RandomLoss, NamedLoss>> read_loss(const std::string& text);

/// Returns the exit code: 0 for any answer; 1 if a setting is wrong; 2 if an argument is.
int run_simulate_command(const SimulateCommand& command, Files& files, ProcessFacts process,
                         std::ostream& out, const Log& log);

}  // namespace cairn
