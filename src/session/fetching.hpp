// Brings one checkpoint from the prefix directory: into the cache, or checked where it is.
#pragma once

#include "session/cached_datasets.hpp"
#include "session/prefix_side.hpp"
#include "session/restart_files.hpp"

namespace cairn {

/// Functions with a communicator are collective, and their errors are agreed.
class Fetching {
 public:
  /// All must outlive this.
  Fetching(ThisRun& run, CachedDatasets& cached, PrefixSide& prefix, RestartFiles& files)
      : run_(run), cached_(cached), prefix_(prefix), files_(files) {}

  /// The dataset is among the cached ones then, checked.
  Status fetch(Communicator& comm, const DatasetRecord& candidate);
  Status check_in_place(Communicator& comm, const DatasetRecord& candidate);
  /// One of these two, as the decision says: logs it, and notes what is damaged.
  Status take(Communicator& comm, const DatasetRecord& candidate, RestartStep step, bool is_begun);
  /// If this is the error of a dataset that is damaged in the prefix directory, no later run is to
  /// try it.
  void note_damage(const Uuid& dataset, const Status& taken) const;

 private:
  Result<RankRecord> fetch_aside(Communicator& comm, const DatasetRecord& candidate, Store& store);
  Status take_fetched(Communicator& comm, const RankRecord& flushed, const Level& level,
                      CachedDataset& dataset);
  void forget_remains_of(Communicator& comm, const Uuid& uuid);
  void log_end(const DatasetRecord& dataset, const Status& taken, RestartStep step, double seconds);

  ThisRun& run_;
  CachedDatasets& cached_;
  PrefixSide& prefix_;
  RestartFiles& files_;
};

}  // namespace cairn
