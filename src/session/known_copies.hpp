// Which datasets this run knows to be complete in the prefix directory, without reading it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "session/cached_datasets.hpp"

namespace cairn {

/// The same on all ranks. A copy that a newer dataset may replace or push out stops counting before
/// that one is begun. So this is never better than the truth.
class KnownCopies {
 public:
  /// Both must outlive this.
  KnownCopies(const ThisRun& run, const CachedDatasets& cached) : run_(run), cached_(cached) {}

  /// Reads from the list of the caches which datasets are there. Call it before one of them leaves
  /// the list.
  void take_in();
  /// Collective. Call it before this dataset is copied, or written in place. Copies that share a
  /// file name with it, or that SCR_PREFIX_SIZE has no room for, do not count from now on.
  /// `is_late`: a newer dataset may be there already.
  void expect(Communicator& comm, const DatasetInfo& dataset, const std::vector<FileEntry>& files,
              bool is_late);

  // Local.

  /// It is damaged there, or no restart takes it from there: its copy does not count any more.
  void doubt(const Uuid& dataset);
  void doubt_all_named(const std::string& name);
  /// Call it if other processes may have changed what is there.
  void forget_uncached();
  /// Its copy does not count, even if it is there.
  bool is_doubtful(const Uuid& dataset) const;
  /// The newest known copy of this name whose dataset has left the caches; null: none.
  const DatasetInfo* find_uncached(const std::string& name) const;

 private:
  struct Copy {
    DatasetInfo dataset;
    std::vector<std::uint64_t> names;  ///< of this rank's files, hashed and sorted
    bool are_names_known = true;       ///< on this rank
    bool is_there = false;
    bool is_doubtful = false;
  };

  Copy* find(const Uuid& dataset);
  const Copy* find(const Uuid& dataset) const;
  Copy& add(const DatasetInfo& dataset, const std::vector<FileEntry>& files);
  bool is_cached(const Copy& copy) const;
  bool may_share_names(const Copy& copy, const Copy& newer) const;
  void doubt_replaced(Communicator& comm, const Copy& newer);
  void doubt_pushed_out();
  void forget_oldest();
  void forget_withdrawn();

  const ThisRun& run_;
  const CachedDatasets& cached_;
  std::vector<Copy> copies_;  ///< newest first
};

}  // namespace cairn
