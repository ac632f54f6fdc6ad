#include "config/settings.hpp"

#include <algorithm>

namespace cairn {

std::string_view name_of(Scheme scheme) {
  switch (scheme) {
    case Scheme::single:
      return "SINGLE";
    case Scheme::partner:
      return "PARTNER";
    case Scheme::xor_:
      return "XOR";
    case Scheme::rs:
      return "RS";
  }
  return "unknown";
}

bool flushes_async(const Settings& settings, const CheckpointSettings& checkpoint) {
  return checkpoint.flush_async.value_or(settings.flush_async);
}

bool flushes_any_async(const Settings& settings) {
  return std::any_of(
      settings.checkpoints.begin(), settings.checkpoints.end(),
      [&](const CheckpointSettings& checkpoint) { return flushes_async(settings, checkpoint); });
}

std::string expand_node(const std::string& path, const std::string& node_name) {
  std::string expanded;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path.compare(i, 2, "%n") == 0) {
      expanded += node_name;
      ++i;
    } else {
      expanded += path[i];
    }
  }
  return expanded;
}

}  // namespace cairn
