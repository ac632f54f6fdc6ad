// Restart from a dataset in the prefix directory: from a copy in the cache, or where it is.
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

/// Collective. Reads this rank's part of the dataset where it is, every block compared with its
/// checksum; returns its record. Where another number of ranks has written it, all share the work,
/// and a rank gets no record, one or several. Errors as of fetch().
Result<std::vector<RankRecord>> check_in_place(Communicator& comm, const Site& site,
                                               const DatasetRecord& dataset);

}  // namespace cairn
