#include "restart/restart_choice.hpp"

#include <algorithm>

namespace cairn {

const CachedDataset* restart_choice(const std::vector<CachedDataset>& datasets, bool only_in_prefix,
                                    const std::optional<Uuid>& not_after) {
  const auto found = std::find_if(datasets.begin(), datasets.end(), [&](const auto& dataset) {
    if (not_after && *not_after < dataset.info.uuid) return false;
    return dataset.state == CacheState::offered ||
           (dataset.restorable() && (dataset.in_prefix() || !only_in_prefix));
  });
  return found == datasets.end() ? nullptr : &*found;
}

namespace {

bool counts(const CachedDataset& dataset) {
  return !is_left_alone(dataset.state) && !is_lost(dataset.state) && !is_held_back(dataset.there);
}

}  // namespace

const CachedDataset* mismatched(const std::vector<CachedDataset>& datasets) {
  const auto newest = std::find_if(datasets.begin(), datasets.end(), counts);
  return newest != datasets.end() && newest->state == CacheState::other_ranks ? &*newest : nullptr;
}

Error wrong_ranks(const CachedDataset& dataset, std::uint32_t ranks) {
  return {Code::wrong_ranks,
          fmt::format("dataset {} in the cache was written by {} ranks, and this run has {}: start "
                      "with {} ranks to restart from it, or set CAIRN_ON_MISMATCH=fresh to start "
                      "from scratch and replace it",
                      dataset.info.number, dataset.info.ranks, ranks, dataset.info.ranks),
          -1};
}

const CachedDataset* only_others_have(const std::vector<CachedDataset>& datasets) {
  const auto newest = std::find_if(datasets.begin(), datasets.end(), [](const auto& dataset) {
    return counts(dataset) && dataset.info.is_checkpoint();
  });
  const bool is_it =
      newest != datasets.end() && !newest->flushed() && newest->state == CacheState::other_ranks;
  return is_it ? &*newest : nullptr;
}

const CachedDataset* refused_for_its_ranks(const std::vector<CachedDataset>& datasets,
                                           const Settings& settings) {
  if (settings.on_mismatch == OnMismatch::fresh) return nullptr;
  const bool is_elsewhere = is_elastic(settings) && only_others_have(datasets) == nullptr;
  return is_elsewhere ? nullptr : mismatched(datasets);
}

}  // namespace cairn
