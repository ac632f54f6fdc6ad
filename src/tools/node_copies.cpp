#include "tools/node_copies.hpp"

#include <iostream>

namespace cairn {

NodeProgress::NodeProgress(std::ostream& out, Clock& clock, const std::string& what, bool has_bar,
                           bool has_lines)
    : bar_(std::cerr, clock, what, has_bar), lines_(out, clock, has_lines) {}

void NodeProgress::show(ScavengeProgress progress) {
  bar_.show(progress.bytes, progress.all_bytes);
  lines_.show(progress.bytes);
}

ScavengeLimits limits_of(const Settings& settings, Background& background) {
  return {{background, settings.io_threads, settings.io_piece_bytes},
          settings.flush_bytes_per_s,
          settings.end_time_s};
}

nlohmann::ordered_json facts_of_node(const std::string& node, const JobCaches& caches) {
  return {{"node", node},
          {"datasets", nlohmann::ordered_json::array()},
          {"unreadable", caches.unreadable},
          {"left", caches.left}};
}

}  // namespace cairn
