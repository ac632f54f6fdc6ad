#include "session/cached_datasets.hpp"

#include <utility>

#include "cache/catalog.hpp"
#include "session/space.hpp"

namespace cairn {

// --- a removal ---

Removal::Removal(const ThisRun& run, const CachedDataset& dataset, Parity parity)
    : log_(run.own_log),
      files_(run.files),
      rank_(run.rank),
      store_(run.stores[dataset.store]),
      dataset_(dataset.info),
      bytes_(dataset.record.data_bytes()),
      parts_(dataset.parts),
      own_path_(store_.rank_folder(dataset.info, rank_).path) {
  const Encoding& encoding = dataset.record.encoding;
  if (parity == Parity::recycled && encoding.members.size() > 1)
    spare_ = RankFolder{own_path_}.parity(encoding.generation);
}

void Removal::note(const Status& status) const {
  if (!status) log_.warning("rank {}: {}", rank_, status.error().text);
}

void Removal::remove_records() const {
  for (const RankFolder& part : parts_) note(remove_all(files_, part.record()));
}

void Removal::remove_data() {
  for (const RankFolder& part : parts_) {
    const bool keeps_spare = !spare_.empty() && part.path == own_path_;
    try {
      note(keeps_spare ? store_.recycle(part, spare_, rank_) : store_.remove(part));
    } catch (const std::exception& error) {
      note(fail(Code::io, "cannot remove an older dataset: {}", error.what()));
    }
  }
}

// --- the list ---

/// From all stores those go to which no run can go back, once there is a newer one that is safe:
/// until then a later run, on other nodes or with more space, may still find them whole. One that
/// is not protected as it should be goes in its turn, but does not count for others. Outputs stay
/// until they are where they must be, or are lost for good, and go then, unless they are
/// checkpoints too. What is neither goes with the next dataset.
std::vector<bool> find_superseded(const std::vector<CachedDataset>& datasets, std::size_t store,
                                  std::size_t keep, const Uuid& as_protected) {
  std::size_t checkpoints = 0;
  bool newer_is_safe = false;
  const auto is_usable = [&](const CachedDataset& dataset) {
    const bool is_protected = dataset.usable() || dataset.info.uuid == as_protected;
    return is_protected && !is_held_back(dataset.there);
  };
  const auto is_safe = [&](const CachedDataset& dataset) {
    return is_usable(dataset) && !dataset.weaker;
  };
  const auto is_superseded = [&](const CachedDataset& dataset) {
    if (is_left_alone(dataset.state) || dataset.is_in_flight) return false;
    if (dataset.awaits_copy()) return false;
    if (!is_usable(dataset)) return newer_is_safe || dataset.goes_with_next_dataset();
    if (!dataset.is_in(store)) return false;
    if (dataset.info.is_checkpoint())
      return is_safe(dataset) ? ++checkpoints > keep : checkpoints >= keep;
    return dataset.flushed() || dataset.info.uuid != datasets[0].info.uuid;
  };
  std::vector<bool> goes;
  for (const CachedDataset& dataset : datasets) {
    goes.push_back(is_superseded(dataset));
    newer_is_safe = newer_is_safe || (is_safe(dataset) && dataset.info.is_checkpoint());
  }
  return goes;
}

CachedDataset* CachedDatasets::find(const Uuid& uuid) {
  const auto found = std::find_if(datasets_.begin(), datasets_.end(),
                                  [&](const auto& dataset) { return dataset.info.uuid == uuid; });
  return found == datasets_.end() ? nullptr : &*found;
}

CachedDataset* CachedDatasets::newest_checkpoint() {
  const auto newest = std::find_if(datasets_.begin(), datasets_.end(),
                                   [](const auto& dataset) { return dataset.restorable(); });
  return newest == datasets_.end() ? nullptr : &*newest;
}

void CachedDatasets::insert(CachedDataset dataset) {
  const auto older = std::find_if(datasets_.begin(), datasets_.end(), [&](const auto& other) {
    return other.info.uuid < dataset.info.uuid;
  });
  datasets_.insert(older, std::move(dataset));
}

RankFolder CachedDatasets::own_folder(const CachedDataset& dataset) const {
  return run_.stores[dataset.store].rank_folder(dataset.info, run_.rank);
}

std::vector<std::string> CachedDatasets::own_paths(const CachedDataset& dataset) const {
  const RankFolder folder = own_folder(dataset);
  std::vector<std::string> paths;
  for (const FileEntry& file : dataset.record.files) paths.push_back(folder.file(file.name));
  return paths;
}

std::vector<CachedPart> CachedDatasets::parts() const {
  std::vector<CachedPart> parts;
  for (const CachedDataset& dataset : datasets_) {
    if (dataset.usable()) {
      parts.push_back({dataset.info.uuid, run_.rank, own_folder(dataset)});
      continue;
    }
    for (const RankFolder& folder : dataset.parts)
      if (const auto owner = owner_of(folder)) parts.push_back({dataset.info.uuid, *owner, folder});
  }
  return parts;
}

ReadRecord CachedDatasets::read_own_records() const {
  return [&files = run_.files](const CachedPart& part) -> Result<RankRecord> {
    HeldPart held = read_part(files, part.folder, part.rank);
    // One that was written and never protected has no checksums to copy the files by.
    std::erase_if(held.own, [](const HeldRecord& own) { return own.record.exposure.has_value(); });
    if (held.own.empty())
      return fail(Code::corrupt, "there is no record of rank {} with checksums in {}", part.rank,
                  part.folder.path);
    return std::move(held.own[0].record);
  };
}

std::vector<CachedPart> CachedDatasets::recorded_parts(const CachedDataset& dataset) const {
  const ReadRecord read = read_own_records();
  std::vector<CachedPart> parts;
  for (const RankFolder& folder : dataset.parts)
    if (const auto owner = owner_of(folder)) {
      const CachedPart part{dataset.info.uuid, *owner, folder};
      if (read(part)) parts.push_back(part);
    }
  return parts;
}

void CachedDatasets::remove(Communicator& comm, const CachedDataset& dataset,
                            Removal::Parity parity) {
  if (dataset.in_prefix()) return;
  Removal removal(run_, dataset, parity);
  removal.remove_records();
  comm.barrier();
  const std::uint64_t bytes = removal.bytes();
  run_.background.post(bytes, [removal = std::move(removal)]() mutable { removal.remove_data(); });
}

void CachedDatasets::wait_for_removal(Communicator& comm) {
  run_.background.wait();
  comm.barrier();
}

void CachedDatasets::drop_spares() {
  for (Store& store : run_.stores) run_.warn_if(store.drop_spare(run_.rank));
}

void CachedDatasets::evict(Communicator& comm, std::size_t store, std::size_t keep, Evicted which) {
  std::vector<CachedDataset> kept;
  const std::vector<bool> goes = find_superseded(datasets_, store, keep);
  for (std::size_t i = 0; i < goes.size(); ++i)
    if (goes[i] && (which == Evicted::all || datasets_[i].flushed()))
      remove(comm, datasets_[i], Removal::Parity::recycled);
    else
      kept.push_back(std::move(datasets_[i]));
  datasets_ = std::move(kept);
}

void CachedDatasets::make_room_after(Communicator& comm, Error& error, std::size_t store) {
  if (error.code != Code::no_space) return;
  const auto is_given_up = [](const CachedDataset& dataset) {
    return (is_lost(dataset.state) && !dataset.awaits_copy()) || is_held_back(dataset.there);
  };
  const bool safe = newest_checkpoint() != nullptr;
  error.text += outputs_held(datasets_, store);
  run_.background.wait();
  drop_spares();
  if (!safe) return;
  for (const CachedDataset& dataset : datasets_)
    if (is_given_up(dataset))
      run_.shared_log.info(
          "the leftovers of dataset {}, from which no run can restart, are removed to free space",
          dataset.info.number);
  remove_if(comm, is_given_up);
}

bool CachedDatasets::warn_if_too_small(Communicator& comm, std::uint64_t data_bytes) {
  if (allreduce(comm, static_cast<std::int64_t>(data_bytes), Reduce::max) == 0) return false;
  const Status fits = check_space(comm, run_.stores, run_.levels, run_.placement, run_.settings,
                                  datasets_, data_bytes);
  if (!fits) run_.shared_log.warning("{}", fits.error().text);
  return true;
}

}  // namespace cairn
