// From a dataset in the prefix directory to files in the cache.
#pragma once

#include "prefix/site.hpp"
#include "records/rank_folder.hpp"

namespace cairn {

/// Collective. Reads this rank's part of the dataset into the folder, which is made anew, every
/// block checked on the way; returns its record as it was flushed. The files have the mode and
/// times of the record. Errors are agreed, and name the file: corrupt, lost, newer_format, io. The
/// folder is the caller's to remove then.
Result<RankRecord> fetch(Communicator& comm, const Site& site, const DatasetRecord& dataset,
                         const RankFolder& into);

}  // namespace cairn
