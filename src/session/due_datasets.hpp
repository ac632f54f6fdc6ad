// Which of the cached datasets belong in the prefix directory, and are not there yet.
#pragma once

#include <vector>

#include "session/cached_datasets.hpp"
#include "session/prefix_side.hpp"

namespace cairn {

/// Outputs always; the newest checkpoint where it is wanted. The same on all ranks.
class DueDatasets {
 public:
  /// All must outlive this.
  DueDatasets(const ThisRun& run, CachedDatasets& cached, PrefixSide& prefix)
      : run_(run), cached_(cached), prefix_(prefix) {}

  /// The newest checkpoint is wanted from now on, unless no checkpoint is copied in this run.
  void want_newest() { wants_newest_ = run_.settings.flush_interval > 0; }
  void newest_is_done() { wants_newest_ = false; }
  bool wants_newest() const { return wants_newest_; }
  /// Collective. What an earlier run has left decides.
  void want_newest_if_overdue(Communicator& comm);
  /// SCR_FLUSH counts it out: it is a checkpoint, and its turn.
  bool has_its_turn(const DatasetInfo& dataset) const;

  /// It is in the caches, and must be in the prefix directory as well.
  bool belongs_there(const CachedDataset& dataset) const;
  bool any_belongs_there() const;
  /// It is usable and not there, and a copy is to begin as soon as that is possible.
  bool has(const CachedDataset& dataset) const;
  /// Newest first; with those of another number of ranks.
  std::vector<Uuid> all() const;

 private:
  bool is_overdue(Communicator& comm) const;

  const ThisRun& run_;
  CachedDatasets& cached_;
  PrefixSide& prefix_;
  bool wants_newest_ = false;
};

}  // namespace cairn
