// Deletes datasets from the prefix directory, and drops them from its index, during a run.
#pragma once

#include "base/log.hpp"
#include "config/settings.hpp"
#include "prefix/flush_plan.hpp"
#include "prefix/site.hpp"

namespace cairn {

/// A run deletes the datasets in the prefix directory at Init, before it chooses one for a restart.
inline bool purges_prefix(const Settings& settings) {
  return settings.prefix_purge && (settings.fetch || settings.flush);
}

/// The purge keeps its files, and deletes those of the others.
inline bool is_dropped_by_purge(const DatasetRecord& record) { return record.info.was_found(); }

/// Functions with a communicator are collective. Errors are agreed.
class Retention {
 public:
  /// `log`: silent but on rank 0. `settings` must outlive this.
  Retention(const Settings& settings, Log log) : settings_(settings), log_(std::move(log)) {}

  /// SCR_PREFIX_SIZE: deletes what exceeds it. Only logs errors.
  void keep_to_window(Communicator& comm, const Site& site) const;
  /// Local. Fails if remove() would not delete this dataset.
  Status check_removal(const Keeper& keeper, const DatasetRecord& record) const;
  /// Deletes this dataset and its files. Fails if a record cannot be read now: its dataset may have
  /// the same files.
  Status remove(Communicator& comm, const Site& site, const DatasetRecord& record) const;
  /// Takes it out of the index; its files stay.
  Status drop(Communicator& comm, const Site& site, const DatasetRecord& record) const;
  /// SCR_PREFIX_PURGE: deletes all datasets like SCR_Delete, but drops those for which
  /// is_dropped_by_purge() is true. `cached`: this rank's parts in the caches. They stay, and no
  /// run copies them again.
  Status purge(Communicator& comm, const Site& site, const std::vector<CachedPart>& cached) const;

 private:
  const DatasetRecord* next_to_go(const Keeper& keeper) const;
  Status as_not_deleted(const Status& why, const DatasetRecord& record) const;
  Status take_out(Communicator& comm, const Site& site, const DatasetRecord& record) const;
  Status remove_files_of(Communicator& comm, const Site& site, const DatasetRecord& record) const;
  Status note_purged(Communicator& comm, const Site& site, const std::vector<DatasetRecord>& purged,
                     const std::vector<CachedPart>& cached) const;
  void log_purge(const std::vector<std::string>& names, std::string_view what) const;

  const Settings& settings_;
  Log log_;
};

}  // namespace cairn
