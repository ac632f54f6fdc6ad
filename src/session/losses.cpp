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
  untold_.push_back({dataset.info.uuid, fail(Code::lost, "{} is lost, and was not copied to {}: {}",
                                             dataset.label(), prefix, dataset.reason)});
}

void Losses::forget(const Uuid& dataset) {
  std::erase_if(untold_, [&](const Loss& loss) { return loss.dataset == dataset; });
}

Status Losses::before(const Status& status) {
  Status all;
  for (Loss& loss : std::exchange(untold_, {})) all = joined(std::move(all), loss.told);
  return joined(std::move(all), status);
}

Status heal_due(Communicator& comm, ThisRun& run, CachedDataset& dataset) {
  Status healed = check_and_heal(comm, run.files, run.stores, run.settings, dataset, run.own_log);
  if (healed) return healed;
  run.losses.note(dataset, run.settings.prefix);
  healed.error().code = Code::lost;
  return healed;
}

}  // namespace cairn
