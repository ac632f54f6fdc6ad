// Removes the files of a deleted dataset from the prefix directory, except those that must stay.
#pragma once

#include <string>
#include <vector>

#include "prefix/site.hpp"

namespace cairn {

/// The numbers of files of a deleted dataset that stay.
struct KeptFiles {
  std::int64_t changed = 0;  ///< they are not what the dataset wrote
  std::int64_t unknown = 0;  ///< this is unknown, because their times were not kept
  std::int64_t shared = 0;   ///< they belong to another dataset too
  std::int64_t led_out = 0;  ///< a link leads to them, so they are not in the prefix directory

  /// The only reason is that the program gave them to several datasets.
  bool is_as_written() const { return changed + unknown + led_out == 0; }
};

/// A message: how many stay, and why; empty if none.
std::string said_of_kept(const KeptFiles& kept);

/// Those of a dataset for which Keeper::take_out() was called.
struct DeletedManifests {
  Uuid uuid;
  std::string folder;
  std::vector<std::uint64_t> numbers;
};

/// Collective. Removes the files in these manifests, and directories that are empty then. If the
/// times of a file allow that it belongs to another dataset too, the records of those datasets are
/// read, and it goes only if none has it. Returns what stays, the same on all ranks. Errors are
/// agreed; the next call removes what is left.
Result<KeptFiles> remove_files(Communicator& comm, const Site& site,
                               const DeletedManifests& deleted);

/// Collective. The same for all manifests of a dataset, with so many ranks in each; then removes
/// the manifests.
Result<KeptFiles> remove_files(Communicator& comm, const Site& site, const DatasetInfo& dataset,
                               std::uint32_t ranks_in_each);

}  // namespace cairn
