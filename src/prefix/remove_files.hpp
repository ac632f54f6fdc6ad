// What goes when a dataset is deleted in the prefix directory, and what stays.
#pragma once

#include <string>
#include <vector>

#include "prefix/site.hpp"

namespace cairn {

/// Files of a deleted dataset that stay where they are.
struct KeptFiles {
  std::int64_t changed = 0;  ///< they are not what the dataset wrote any more
  std::int64_t unknown = 0;  ///< or may not be, as their times were not kept
  std::int64_t shared = 0;   ///< or are another dataset's as well
  std::int64_t led_out = 0;  ///< or are not in the prefix directory any more: a link leads to them

  /// No more than what the program has given to several datasets.
  bool is_as_written() const { return changed + unknown + led_out == 0; }
};

/// How many, and why; empty if none.
std::string said_of_kept(const KeptFiles& kept);

/// Of a dataset that the keeper has taken out.
struct DeletedManifests {
  Uuid uuid;
  std::string folder;
  std::vector<std::uint64_t> numbers;
};

/// io, before anything is deleted, if it may come to asking one of these.
Status refuse_unread_beside(const std::vector<UnreadDataset>& unread);

/// Collective. Removes the files that these manifests tell of, and the folders that are empty then.
/// What by its times may be another dataset's as well goes only where none has such a file. What
/// stays, the same on all ranks. Errors are agreed; what is left then is for the next
/// time.
Result<KeptFiles> remove_files(Communicator& comm, const Site& site,
                               const DeletedManifests& deleted);

/// Collective. The same with all of a dataset of so many ranks in a manifest; then the manifests
/// go.
Result<KeptFiles> remove_files(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                               std::uint32_t ranks_in_each);

}  // namespace cairn
