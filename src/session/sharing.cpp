#include "session/sharing.hpp"

namespace cairn {

Result<std::vector<int>> ranks_sharing(const Store& store, int rank, const Placement& placement,
                                       const Settings& settings) {
  CAIRN_ASSIGN(const auto groups,
               failure_groups(placement, store.shared() ? "WORLD" : store.settings().group,
                              settings.node_groups));
  std::vector<int> sharing;
  for (int other = 0; other < placement.size(); ++other)
    if (groups[static_cast<std::size_t>(other)] == groups[static_cast<std::size_t>(rank)])
      sharing.push_back(other);
  return sharing;
}

}  // namespace cairn
