#include "session/losses.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "prefix/contents.hpp"
#include "prefix/copy_files.hpp"
#include "recovery/restore.hpp"
#include "session/prefix_side.hpp"
#include "session/this_run.hpp"

namespace cairn {

Status joined(Status first, const Status& second) {
  if (first) return second;
  if (second) return first;
  Error& both = first.error();
  if (second.error().code == Code::lost) both.code = Code::lost;
  both.text += "; " + second.error().text;
  both.is_reported = both.is_reported && second.error().is_reported;
  return first;
}

std::string not_copied(const CachedDataset& dataset, const std::string& prefix) {
  using Repair = CachedDataset::Repair;
  const std::string_view remedy =
      !dataset.info.is_output() ? ""
      : dataset.repair == Repair::unknown
          ? ". It stays in the caches: start again on the nodes that have its parts, or give it up "
            "with SCR_Delete"
      : dataset.repair == Repair::never
          ? ". It stays in the caches until it is known whether that directory has it"
          : ". It stays in the caches; the next run and \"cairn scavenge\" try again";
  return fmt::format("{} was not copied to {}, because it cannot be repaired now: {}{}",
                     dataset.label(), prefix, dataset.reason, remedy);
}

void Losses::note(const CachedDataset& dataset, const std::string& prefix) {
  if (!dataset.is_given_up()) {
    unreported_.push_back(fail(Code::not_copied, "{}", not_copied(dataset, prefix)));
    return;
  }
  events_.lost(dataset.info, dataset.reason);
  unreported_.push_back(fail(Code::lost, "{} is lost, and was not copied to {}: {}",
                             dataset.label(), prefix, dataset.reason));
}

Status Losses::before(const Status& status) {
  Status all;
  for (const Status& loss : std::exchange(unreported_, {})) all = joined(std::move(all), loss);
  return joined(std::move(all), status);
}

Status as_not_copied(Status healed, const CachedDataset& dataset) {
  if (!healed && healed.error().code == Code::lost && !dataset.is_given_up())
    healed.error().code = Code::not_copied;
  return healed;
}

Status heal_due(Communicator& comm, ThisRun& run, CachedDataset& dataset) {
  Status healed = check_and_heal(comm, run.files, run.stores, run.settings, dataset, run.own_log);
  if (!healed) run.losses.note(dataset, run.settings.prefix);
  return as_not_copied(std::move(healed), dataset);
}

namespace {

/// A newer one of its name is there, all its files are written since, and no run has found it
/// damaged.
bool is_superseded(Communicator& comm, const Site& site, const CachedDataset& dataset) {
  const auto newest = share(comm, site.keeper != nullptr
                                      ? find_named(site.keeper->known().listing, dataset.info.name)
                                      : nullptr);
  if (!newest || !(dataset.info.uuid < newest->info.uuid) ||
      !may_restart_from(state_of_files(*newest)))
    return false;  // on all ranks alike
  const auto& mine = dataset.record.files;
  const bool is_written = std::all_of(mine.begin(), mine.end(), [&site](const FileEntry& file) {
    return is_written_since(site.files, file, site.folder.file(file));
  });
  return allreduce(comm, is_written ? 1 : 0, Reduce::min) != 0;
}

}  // namespace

void note_unless_superseded(Communicator& comm, ThisRun& run, PrefixSide& prefix,
                            const CachedDataset& dataset) {
  if (dataset.is_given_up() && is_superseded(comm, prefix.owner().site(), dataset))
    run.shared_log.info("{} is not missed, because {} has a newer {}", dataset.label(),
                        run.settings.prefix, dataset.info.name);
  else
    run.losses.note(dataset, run.settings.prefix);
}

Status heal_for_copy(Communicator& comm, ThisRun& run, PrefixSide& prefix, CachedDataset& dataset) {
  Status healed = check_and_heal(comm, run.files, run.stores, run.settings, dataset, run.own_log);
  if (!healed) note_unless_superseded(comm, run, prefix, dataset);
  return as_not_copied(std::move(healed), dataset);
}

}  // namespace cairn
