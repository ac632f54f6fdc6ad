// Repairs files of a published dataset from its parts in the caches.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "prefix/check.hpp"
#include "prefix/keeper.hpp"
#include "records/rank_folder.hpp"

namespace cairn {

struct RepairOptions {
  bool copy_metadata = true;           ///< files get the mode and times of the record
  std::set<std::string> not_to_touch;  ///< names that belong to a newer dataset now
};

/// The files of a rank that are not as they were flushed, by their index.
std::vector<std::size_t> damaged_files(const RankRecord& record, const RankCheck& found);

/// Local. Those of `names` that a dataset in `listing`, newer than `dataset`, has too: a repair of
/// the older dataset would destroy these files of the newer one.
Result<std::set<std::string>> names_taken(Files& files, const PrefixFolder& folder,
                                          const DatasetRecord& dataset, const Listing& listing,
                                          const std::set<std::string>& names);

/// Local. Whether repair_files() could succeed, as far as reading shows. `sources`: directories
/// with this rank's part in caches. Fails with lost, naming the file, if a block is intact in none
/// of these places. Changes nothing.
Status can_repair_files(Files& files, const PrefixFolder& folder, const RankRecord& record,
                        const RankCheck& found, const std::vector<RankFolder>& sources,
                        const RepairOptions& options);

/// Local. Writes each damaged file anew, beside its place, from intact blocks of the file and of
/// the caches, each compared with its checksum, and then renames it. So a crash leaves the old file
/// or the whole new one. The dataset must be settled, and the caller own the prefix directory.
Status repair_files(Files& files, const PrefixFolder& folder, const RankRecord& record,
                    const RankCheck& found, const std::vector<RankFolder>& sources,
                    const RepairOptions& options);

/// Local. Those files of a rank, by their index, that have not the modes and times of the record,
/// although their sizes are right.
std::vector<std::size_t> files_with_other_attributes(Files& files, const PrefixFolder& folder,
                                                     const RankRecord& record);

/// Local. Sets the recorded modes and times of these files, except of those in `not_to_touch`.
/// Returns of how many. Their bytes must be as the record says: a process that was late wrote the
/// same bytes once more, and died before it set the attributes. The caller owns the prefix
/// directory.
Result<std::size_t> restore_attributes(Files& files, const PrefixFolder& folder,
                                       const RankRecord& record,
                                       const std::set<std::string>& not_to_touch);

}  // namespace cairn
