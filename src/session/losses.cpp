#include "session/losses.hpp"

#include <utility>

#include "recovery/restore.hpp"
#include "session/this_run.hpp"

namespace cairn {

Status joined(Status first, const Status& second) {
  if (first) return second;
  if (second) return first;
  Error& both = first.error();
  both.text += "; " + second.error().text;
  both.is_reported = both.is_reported && second.error().is_reported;
  return first;
}

void Losses::note(const CachedDataset& dataset, const std::string& prefix) {
  const Status told =
      dataset.repairable
          ? fail(Code::not_copied,
                 "{} was not copied to {}, because it cannot be repaired now: {}{}",
                 dataset.label(), prefix, dataset.reason,
                 dataset.info.is_output()
                     ? ". It stays in the caches; the next run and \"cairn scavenge\" try again"
                     : "")
          : fail(Code::lost, "{} is lost, and was not copied to {}: {}", dataset.label(), prefix,
                 dataset.reason);
  untold_ = joined(std::move(untold_), told);
}

Status Losses::before(const Status& status) {
  return joined(std::exchange(untold_, Status{}), status);
}

Status heal_due(Communicator& comm, ThisRun& run, CachedDataset& dataset) {
  Status healed = check_and_heal(comm, run.files, run.stores, run.settings, dataset, run.own_log);
  if (!healed) run.losses.note(dataset, run.settings.prefix);
  return healed;
}

}  // namespace cairn
