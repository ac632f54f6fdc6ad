// Which files of a deleted dataset are removed from the prefix directory, and which stay.
#pragma once

#include <string>
#include <vector>

#include "prefix/site.hpp"

namespace cairn {

/// The numbers of files of a deleted dataset that stay.
struct KeptFiles {
  std::int64_t changed = 0;  ///< they have changed since the dataset wrote them
  std::int64_t unknown = 0;  ///< they may have changed, as their times were not kept
  std::int64_t shared = 0;   ///< they also belong to another dataset
  std::int64_t led_out = 0;  ///< they are no longer in the prefix directory: a link leads to them

  /// Only files that belong to several datasets stay.
  bool is_as_written() const { return changed + unknown + led_out == 0; }
};

/// A text with their numbers and reasons; empty if there are none.
std::string said_of_kept(const KeptFiles& kept);

/// The manifests of a dataset that the keeper has deleted.
struct DeletedManifests {
  Uuid uuid;
  std::string folder;
  std::vector<std::uint64_t> numbers;
};

/// Called before a deletion: io if the decision may need one of these datasets.
Status refuse_unread_beside(const std::vector<UnreadDataset>& unread);

/// Collective. Removes the files in these manifests, and directories that become empty. A file that
/// may belong to another dataset, judging by its times, is removed only if no dataset has such a
/// file. Returns the files that stay, the same on all ranks. Errors are agreed; the next call
/// removes the rest.
Result<KeptFiles> remove_files(Communicator& comm, const Site& site,
                               const DeletedManifests& deleted);

/// Collective. The same for all files of a dataset, with `ranks_in_each` ranks per manifest; then
/// removes the manifests.
Result<KeptFiles> remove_files(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                               std::uint32_t ranks_in_each);

}  // namespace cairn
