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

/// The job's directory in a store. Datasets are directories dataset.NUMBER.UUID, ranks are
/// directories in these.
class Store {
 public:
  /// Makes or accepts the job's private directory below the store's base. Its name has user and job
  /// of `settings`, and `id`.
  static Result<Store> open(Files& files, const StoreSettings& store, const Settings& settings,
                            PrefixId id);

  /// An existing directory of a job under any name. Does not check owner and permissions: for tools
  /// that work on the leftovers of a job.
  static Result<Store> at(Files& files, const std::string& root);

  const StoreSettings& settings() const { return settings_; }
  const std::string& root() const { return root_; }
  /// The store is not main memory, so a sync makes sense.
  bool durable() const { return durable_; }
  bool shared() const { return settings_.shared(); }

  std::string dataset_folder(const DatasetInfo& dataset) const;
  RankFolder rank_folder(const DatasetInfo& dataset, int rank) const;

  /// Makes the directories for a rank's part of a new dataset. Does not sync their names.
  Status make_rank_folder(const DatasetInfo& dataset, int rank);
  /// Makes the names above a rank's directory durable, if the store is durable.
  Status sync_names(const DatasetInfo& dataset);

  /// Removes a rank's part, and the dataset's directory with the last one.
  Status remove(const RankFolder& folder);

  /// fetch.RANK: where a fetched part is assembled until it is known to be good, as the store may
  /// have leftovers of the same dataset. A later run does not use it.
  RankFolder fetch_folder(int rank) const;
  /// Moves it to the place of the rank's part, and removes what is there.
  Status take_fetched(const DatasetInfo& dataset, int rank);

  // In a store that is memory, a parity file that is no longer needed is kept for the next one:
  // overwriting existing pages takes half the time of allocating new ones. The next parity file
  // needs the space in any case.

  /// spare.RANK
  std::string spare(int rank) const;
  /// Like remove(), but keeps `parity`, a file in the directory, as the spare if the store is
  /// memory.
  Status recycle(const RankFolder& folder, const std::string& parity, int rank);
  Status drop_spare(int rank);

  /// broadcast.RANK: copies of files for all ranks of a node, named after its first rank. A later
  /// run does not use them.
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
