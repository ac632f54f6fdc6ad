#include "session/due_datasets.hpp"

#include <algorithm>

#include "restart/restart_choice.hpp"

namespace cairn {

bool DueDatasets::has_its_turn(const DatasetInfo& dataset) const {
  const auto interval = static_cast<std::uint64_t>(run_.settings.flush_interval);
  return interval > 0 && dataset.checkpoint > 0 && dataset.checkpoint % interval == 0;
}

void DueDatasets::want_newest_if_overdue(Communicator& comm) {
  if (!wants_newest_) wants_newest_ = is_overdue(comm);
}

/// An earlier run has made a checkpoint that was to be copied, or one after it, and the newest in
/// the prefix directory is older. Where the run has gone back since, the numbers do not go on from
/// that one: then the newest counts as overdue.
bool DueDatasets::is_overdue(Communicator& comm) const {
  const CachedDataset* newest = cached_.newest_checkpoint();
  if (run_.settings.flush_interval == 0 || newest == nullptr || newest->flushed()) return false;
  if (!prefix_.owner().trouble().empty()) return false;  // it may be there
  const auto copied = prefix_.newest_sound(comm);
  const auto interval = static_cast<std::uint64_t>(run_.settings.flush_interval);
  const std::uint64_t made = newest->info.checkpoint;
  if (!copied) return made >= interval;
  const bool went_back = made <= copied->info.checkpoint;
  return copied->info.uuid < newest->info.uuid &&
         (went_back || made / interval > copied->info.checkpoint / interval);
}

bool DueDatasets::belongs_there(const CachedDataset& dataset) const {
  const bool readable =
      dataset.usable() || (is_elastic(run_.settings) && dataset.state == CacheState::other_ranks);
  const bool wanted = wants_newest_ && &dataset == cached_.newest_checkpoint();
  return run_.settings.flush && readable && (dataset.info.is_output() || wanted);
}

bool DueDatasets::any_belongs_there() const {
  return std::any_of(cached_.all().begin(), cached_.all().end(),
                     [this](const auto& one) { return belongs_there(one); });
}

bool DueDatasets::has(const CachedDataset& dataset) const {
  return dataset.usable() && !dataset.flushed() && belongs_there(dataset);
}

std::vector<Uuid> DueDatasets::all() const {
  std::vector<Uuid> due;
  for (const CachedDataset& dataset : cached_.all())
    if (belongs_there(dataset) && !dataset.flushed()) due.push_back(dataset.info.uuid);
  return due;
}

}  // namespace cairn
