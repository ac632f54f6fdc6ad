// What the commands that copy from one node to the prefix directory have in common.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "recovery/dead_caches.hpp"
#include "scavenge/scavenge.hpp"
#include "tools/progress_bar.hpp"

namespace cairn {

/// How far the copies have come: for people on stderr, for programs on `out`.
class NodeProgress {
 public:
  NodeProgress(std::ostream& out, Clock& clock, const std::string& what, bool has_bar,
               bool has_lines);

  void show(ScavengeProgress progress);
  /// Nothing more is copied; in an error no last line follows.
  void end_bar() { bar_.end(); }
  void end(std::uint64_t bytes) { lines_.end(bytes); }
  double seconds() const { return bar_.seconds(); }

 private:
  ProgressBar bar_;
  ProgressLines lines_;
};

/// By the settings of the job.
ScavengeLimits limits_of(const Settings& settings, Background& background);

/// "node", "datasets" (an empty list), "unreadable", "left".
nlohmann::ordered_json facts_of_node(const std::string& node, const JobCaches& caches);

}  // namespace cairn
