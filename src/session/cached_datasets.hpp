// The datasets that the job has in its caches, and how they go from there.
#pragma once

#include <algorithm>
#include <vector>

#include "prefix/flush_parts.hpp"
#include "recovery/cached_dataset.hpp"
#include "session/this_run.hpp"

namespace cairn {

/// Newest first, the same on all ranks. One that is only read in the prefix directory is among
/// them. Functions with a communicator are collective.
class CachedDatasets {
 public:
  enum class Parity { removed, recycled };

  explicit CachedDatasets(ThisRun& run) : run_(run) {}

  std::vector<CachedDataset>& all() { return datasets_; }
  const std::vector<CachedDataset>& all() const { return datasets_; }
  /// Null if it is not there, as the next.
  CachedDataset* find(const Uuid& uuid);
  CachedDataset* newest_checkpoint();
  void insert(CachedDataset dataset);
  /// Out of the list only, as the next. This one is in it.
  void forget(const CachedDataset& dataset) {
    datasets_.erase(datasets_.begin() + (&dataset - datasets_.data()));
  }
  template <class Goes>
  void forget_if(Goes goes) {
    std::erase_if(datasets_, goes);
  }

  /// Removes a dataset on all ranks: every record is gone before any data is, so that no rank's
  /// crash in between leaves something that looks committed and is not whole. The data, which take
  /// long, go in the background. What cannot be removed is only told. It stays in the list.
  void remove(Communicator& comm, const CachedDataset& dataset, Parity parity = Parity::removed);
  /// These, and out of the list.
  template <class Goes>
  void remove_if(Communicator& comm, Goes goes) {
    for (const CachedDataset& dataset : datasets_)
      if (goes(dataset)) remove(comm, dataset);
    std::erase_if(datasets_, goes);
  }
  /// Waits until what was removed is gone on all ranks.
  void wait_for_removal(Communicator& comm);
  /// Removes the oldest checkpoints of a store until `keep` are left, and what is superseded; but
  /// nothing that is in flight.
  void evict(Communicator& comm, std::size_t store, std::size_t keep);
  /// Where a store is full, the error tells what stays there, and the run that has a checkpoint to
  /// go back to gives up what it cannot restore.
  void make_room_after(Communicator& comm, Error& error, std::size_t store);
  /// What is kept for the next checkpoint, where there is none or it has no parity.
  void drop_spares();
  /// Once a size is known: whether what is to be kept fits. True if it could be told.
  bool warn_if_too_small(Communicator& comm, std::uint64_t data_bytes);

  RankFolder own_folder(const CachedDataset& dataset) const;
  /// One for each file of this rank's record.
  std::vector<std::string> own_paths(const CachedDataset& dataset) const;
  /// What this rank has of datasets that an earlier run may have begun to flush: of those that
  /// cannot be restored too, where others have done the parts that are lost.
  std::vector<CachedPart> parts() const;
  /// What this rank has of it together with records.
  std::vector<CachedPart> recorded_parts(const CachedDataset& dataset) const;
  ReadRecord read_own_records() const;

 private:
  ThisRun& run_;
  std::vector<CachedDataset> datasets_;
};

}  // namespace cairn
