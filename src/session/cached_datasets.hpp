// The datasets that the job has in its caches, and their removal.
#pragma once

#include <algorithm>
#include <vector>

#include "prefix/flush_parts.hpp"
#include "recovery/cached_dataset.hpp"
#include "session/this_run.hpp"

namespace cairn {

/// The removal of this rank's parts of a dataset, by any thread. Errors are only logged.
class Removal {
 public:
  enum class Parity { removed, recycled };

  /// The files of the run must outlive this.
  Removal(const ThisRun& run, const CachedDataset& dataset, Parity parity);

  const DatasetInfo& dataset() const { return dataset_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Of all ranks, before the data of any: so that no crash leaves something that looks committed
  /// and is not complete.
  void remove_records() const;
  /// These take long.
  void remove_data();

 private:
  void note(const Status& status) const;

  const Log log_;
  Files& files_;
  const int rank_;
  Store store_;
  const DatasetInfo dataset_;
  const std::uint64_t bytes_;
  const std::vector<RankFolder> parts_;
  std::string own_path_;
  std::string spare_;  ///< the parity that is kept for the next one; empty: none
};

/// Which of these datasets no run needs, if `keep` checkpoints of a store are kept. `as_protected`
/// counts as protected. A pure function of what is the same on all ranks.
std::vector<bool> find_superseded(const std::vector<CachedDataset>& datasets, std::size_t store,
                                  std::size_t keep, const Uuid& as_protected = {});

/// Newest first, the same on all ranks. Includes a dataset that is only read in the prefix
/// directory. Functions with a communicator are collective.
class CachedDatasets {
 public:
  explicit CachedDatasets(ThisRun& run) : run_(run) {}

  std::vector<CachedDataset>& all() { return datasets_; }
  const std::vector<CachedDataset>& all() const { return datasets_; }
  /// Null if it is not in the list. The same for newest_checkpoint().
  CachedDataset* find(const Uuid& uuid);
  CachedDataset* newest_checkpoint();
  void insert(CachedDataset dataset);
  /// Removes it from the list only, like forget_if(). It must be in the list.
  void forget(const CachedDataset& dataset) {
    datasets_.erase(datasets_.begin() + (&dataset - datasets_.data()));
  }
  template <class Goes>
  void forget_if(Goes goes) {
    std::erase_if(datasets_, goes);
  }

  /// Removes a dataset on all ranks, but not from the list. The data go in the background.
  void remove(Communicator& comm, const CachedDataset& dataset,
              Removal::Parity parity = Removal::Parity::removed);
  /// Removes these, also from the list.
  template <class Goes>
  void remove_if(Communicator& comm, Goes goes) {
    for (const CachedDataset& dataset : datasets_)
      if (goes(dataset)) remove(comm, dataset);
    std::erase_if(datasets_, goes);
  }
  /// Waits until all removed data are gone on all ranks.
  void wait_for_removal(Communicator& comm);
  enum class Evicted { all, flushed };
  /// Removes the oldest checkpoints of a store until `keep` are left, and what is superseded; but
  /// nothing that is in flight. Or of those only what the prefix directory has.
  void evict(Communicator& comm, std::size_t store, std::size_t keep, Evicted which = Evicted::all);
  /// For an error no_space of this store: adds to its text what is stored there. If the run has a
  /// checkpoint to restart from, also removes what no run can restart from.
  void make_room_after(Communicator& comm, Error& error, std::size_t store);
  /// Removes files that are kept for reuse by the next checkpoint.
  void drop_spares();
  /// Warns if what is to be kept does not fit. False if no rank has any data, so it is unknown.
  bool warn_if_too_small(Communicator& comm, std::uint64_t data_bytes);

  RankFolder own_folder(const CachedDataset& dataset) const;
  /// One for each file of this rank's record.
  std::vector<std::string> own_paths(const CachedDataset& dataset) const;
  /// This rank's parts of datasets that an earlier run may have begun to flush. Includes datasets
  /// that cannot be restored: their lost parts may have been copied.
  std::vector<CachedPart> parts() const;
  /// The parts of this dataset on this rank that have records.
  std::vector<CachedPart> recorded_parts(const CachedDataset& dataset) const;
  ReadRecord read_own_records() const;

 private:
  ThisRun& run_;
  std::vector<CachedDataset> datasets_;
};

}  // namespace cairn
