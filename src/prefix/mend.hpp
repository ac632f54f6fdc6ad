// Repairs files of a published dataset from what the caches still have of it.
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
  std::set<std::string> not_to_touch;  ///< names that belong to a newer dataset by now
};

/// The files of a rank in which something is wrong, by their index.
std::vector<std::size_t> files_to_mend(const RankRecord& record, const RankCheck& found);

/// Local. What of `names` is the name of a file of a dataset in `listing`, newer than `dataset`:
/// who repaired the older one would destroy the newer one's.
Result<std::set<std::string>> names_taken(Files& files, const PrefixFolder& folder,
                                          const DatasetRecord& dataset, const Listing& listing,
                                          const std::set<std::string>& names);

/// Local. Whether mend() could do it, as far as reading tells; changes nothing. lost, naming the
/// file, if a block of it is as it was neither there nor in any of `sources`, folders of this
/// rank's part in caches.
Status can_mend(Files& files, const PrefixFolder& folder, const RankRecord& record,
                const RankCheck& found, const std::vector<RankFolder>& sources,
                const MendOptions& options);

/// Local. Makes every file in which something is wrong anew, beside its place, of the blocks that
/// are good and of those that a cache has, each compared with its checksum; then it gets its name
/// by a rename. So a crash leaves the old file or the whole new one. Of a settled dataset, by the
/// owner of the prefix directory.
Status mend(Files& files, const PrefixFolder& folder, const RankRecord& record,
            const RankCheck& found, const std::vector<RankFolder>& sources,
            const MendOptions& options);

}  // namespace cairn
