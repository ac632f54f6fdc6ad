// What one run of a simulated job with a prefix directory does, and what happens to it.
#pragma once

#include <optional>
#include <vector>

#include "async_plan.hpp"
#include "prefix_books.hpp"

namespace cairn::sim {

struct PrefixPlan {
  int datasets = 0;
  bool finalize = true;
  bool loses_nodes = true;          ///< all of them, before it begins
  bool power = false;               ///< what ends it is a power failure of everything
  std::uint64_t ends_after = 0;     ///< calls; 0: it does not end before its time
  std::uint64_t ends_in_flush = 0;  ///< as many calls after the first plan of a flush is made
  int damages = 0;                  ///< to flushed files, before it begins
  bool dies_in_restart = false;     ///< when that was counted
  std::vector<PrefixCall> calls;
  FaultPlan faults;
  std::optional<FaultPlan> faults_of_restart;  ///< from when the program asks for one
  AsyncPlan async;
  Settings settings;
};

}  // namespace cairn::sim
