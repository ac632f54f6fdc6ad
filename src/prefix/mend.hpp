// Repairs files of a published dataset from its parts in the caches.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "prefix/check.hpp"
#include "prefix/keeper.hpp"
#include "records/rank_folder.hpp"

namespace cairn {

struct MendOptions {
  bool copy_metadata = true;           ///< files get the mode and times of the record
  std::set<std::string> not_to_touch;  ///< names that belong to a newer dataset now
};

/// The damaged files of a rank, by their index.
std::vector<std::size_t> files_to_mend(const RankRecord& record, const RankCheck& found);

/// Local. Those of `names` that belong to a dataset in `listing` newer than `dataset`: a repair of
/// the older file would destroy the newer one.
Result<std::set<std::string>> names_taken(Files& files, const PrefixFolder& folder,
                                          const DatasetRecord& dataset, const Listing& listing,
                                          const std::set<std::string>& names);

/// Local. Checks by reading only whether mend() can repair the files. lost, with the name of the
/// file, if a block of it is intact neither there nor in any of `sources`, the folders of this
/// rank's part in caches.
Status can_mend(Files& files, const PrefixFolder& folder, const RankRecord& record,
                const RankCheck& found, const std::vector<RankFolder>& sources,
                const MendOptions& options);

/// Local. Writes every damaged file again beside its place, from its intact blocks and those of the
/// caches, each compared with its checksum; then renames it. So a crash leaves the old file or the
/// complete new one. For a settled dataset; only the owner of the prefix directory may call it.
Status mend(Files& files, const PrefixFolder& folder, const RankRecord& record,
            const RankCheck& found, const std::vector<RankFolder>& sources,
            const MendOptions& options);

}  // namespace cairn
