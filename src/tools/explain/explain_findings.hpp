// What is to be said of each dataset: would a restart take it, if not why, and what to do.
#pragma once

#include <string>
#include <vector>

#include "tools/advice.hpp"
#include "tools/restart_forecast.hpp"

namespace cairn {

struct Finding {
  std::string place;  ///< "cache", "prefix", "unfinished flush", "dropped" or "scavenged"
  std::uint64_t number = 0;
  std::string name;
  std::string uuid;
  std::uint32_t ranks = 0;
  bool taken = false;             ///< a restart would take this one
  bool usable = false;            ///< it could be restarted from, were it the choice
  bool only_written = false;      ///< in the cache: no part of it is protected yet
  bool published_by_run = false;  ///< a checkpoint that cairn run publishes before its first launch
  std::string text;               ///< why, or why not
  std::vector<std::string> to_do;  ///< commands, and what else helps
};

/// Of all datasets there are, newest first.
std::vector<Finding> find_all(const JobFacts& facts, const Settings& settings,
                              const Forecast& forecast, const Advice& advice,
                              const LookAtFiles& look, const CountChanged& count_changed);

}  // namespace cairn
