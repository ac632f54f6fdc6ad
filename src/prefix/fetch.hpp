// Restart from a dataset in the prefix directory: from a copy in the cache, or from the files in
// place.
#pragma once

#include "prefix/site.hpp"
#include "records/rank_folder.hpp"

namespace cairn {

/// Collective. Copies this rank's part of the dataset into a new folder, and checks every block;
/// returns the flushed record. The files get the mode and times of the record. Errors are agreed,
/// and have the file name: corrupt, lost, newer_format, io. The caller must remove the folder then.
Result<RankRecord> fetch(Communicator& comm, const Site& site, const DatasetRecord& dataset,
                         const RankFolder& into);

/// Collective. Reads this rank's part of the dataset in place, and compares every block with its
/// checksum; returns its record. If another number of ranks has written it, the ranks share the
/// work, and a rank gets no record, one or several. Errors like those of fetch().
Result<std::vector<RankRecord>> check_in_place(Communicator& comm, const Site& site,
                                               const DatasetRecord& dataset);

}  // namespace cairn
