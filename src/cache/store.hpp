// One store of the cache as this rank sees it.
#pragma once

#include <string>
#include <vector>

#include "config/settings.hpp"
#include "files/files.hpp"
#include "records/prefix_id.hpp"
#include "records/rank_folder.hpp"
#include "records/rank_record.hpp"

namespace cairn {

/// The job's folder in a store. Datasets are folders dataset.NUMBER.UUID, ranks are folders in
/// these.
class Store {
 public:
  /// Claims the job's private folder below the store's base. `settings` gives user, job and node,
  /// `id` is in its name.
  static Result<Store> open(Files& files, const StoreSettings& store, const Settings& settings,
                            PrefixId id);

  /// The folder of a job that is there, whatever it is called. Claims nothing, checks nobody's
  /// rights: for tools that work on what is left of a job.
  static Result<Store> at(Files& files, const std::string& root);

  const StoreSettings& settings() const { return settings_; }
  const std::string& root() const { return root_; }
  /// Syncing gains something: the store is not main memory.
  bool durable() const { return durable_; }
  bool shared() const { return settings_.shared(); }

  std::string dataset_folder(const DatasetInfo& dataset) const;
  RankFolder rank_folder(const DatasetInfo& dataset, int rank) const;

  /// Makes the folders for a rank's part of a new dataset; their names durable.
  Status make_rank_folder(const DatasetInfo& dataset, int rank);
  /// Makes the names above a rank's folder durable, where syncing gains something.
  Status sync_names(const DatasetInfo& dataset);

  /// Removes a rank's part, and the dataset's folder with the last one.
  Status remove(const RankFolder& folder);

  /// Where a rank's part of a dataset is put together that the store may have remains of, until it
  /// is known to be good: fetch.RANK. Of no use to a later run.
  RankFolder fetch_folder(int rank) const;
  /// It becomes the rank's part, in the place of whatever is there.
  Status take_fetched(const DatasetInfo& dataset, int rank);

  // A parity file that is done with is kept for the next one where the store is memory: to write
  // over pages that are there takes half as long as to have new ones made. The room is needed then
  // in any case.

  /// spare.RANK
  std::string spare(int rank) const;
  /// As remove(), but `parity`, which is in the folder, becomes the spare.
  Status recycle(const RankFolder& folder, const std::string& parity, int rank);
  Status drop_spare(int rank);

  /// Copies of files for all ranks of the node whose first rank this is: broadcast.RANK. They are
  /// of no use to a later run.
  std::string broadcast(int first_rank) const;
  Status drop_broadcasts();

  Result<Space> space() const { return files_->space(root_); }

 private:
  Store(Files& files, StoreSettings settings, std::string root, bool durable)
      : files_(&files), settings_(std::move(settings)), root_(std::move(root)), durable_(durable) {}

  Files* files_;
  StoreSettings settings_;
  std::string root_;
  bool durable_;
};

}  // namespace cairn
