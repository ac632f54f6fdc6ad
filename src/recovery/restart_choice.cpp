#include "recovery/restart_choice.hpp"

#include <algorithm>

namespace cairn {

const CachedDataset* restart_choice(const std::vector<CachedDataset>& datasets,
                                    bool only_in_prefix) {
  const auto found = std::find_if(datasets.begin(), datasets.end(), [&](const auto& dataset) {
    return dataset.restorable() && (dataset.in_prefix() || !only_in_prefix);
  });
  return found == datasets.end() ? nullptr : &*found;
}

const CachedDataset* mismatched(const std::vector<CachedDataset>& datasets) {
  const auto newest = std::find_if(datasets.begin(), datasets.end(), [](const auto& dataset) {
    return dataset.state != CachedDataset::State::left_alone &&
           dataset.state != CachedDataset::State::unusable;
  });
  return newest != datasets.end() && newest->state == CachedDataset::State::other_ranks ? &*newest
                                                                                        : nullptr;
}

Error wrong_ranks(const CachedDataset& dataset, std::uint32_t ranks) {
  return {Code::wrong_ranks,
          fmt::format("dataset {} in the cache was written by {} ranks, and this run has {}: start "
                      "with {} ranks to restart from it, or set CAIRN_ON_MISMATCH=fresh to begin "
                      "anew in its place",
                      dataset.info.number, dataset.info.ranks, ranks, dataset.info.ranks),
          -1};
}

std::vector<std::size_t> only_others_have(const std::vector<CachedDataset>& datasets) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    if (datasets[i].state != CachedDataset::State::other_ranks) continue;
    if (!datasets[i].flushed) found.insert(found.begin(), i);
    if (datasets[i].info.is_checkpoint()) break;
  }
  return found;
}

}  // namespace cairn
