// Datasets made of files that somebody else has written into the prefix directory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "prefix/site.hpp"

namespace cairn {

struct FoundDataset {
  DatasetRecord record;  ///< info, job_id, and what is known of failures; the rest is filled in
  std::vector<std::vector<std::string>> files;  ///< of each rank, relative to the prefix directory
  std::string node;                             ///< that answers for them
  std::uint32_t block_bytes = 0;
};

/// Collective, of one process, which has the keeper. Reads all files once, takes their checksums,
/// and publishes them as a dataset in place, by the protocol of publish_in_place(). A file that
/// several ranks name is shared by them. Returns its record.
///
/// Errors: those of the files, invalid where one is no regular file, is named twice by a rank, or
/// changes meanwhile; nothing was published then. Files are never changed.
Result<DatasetRecord> publish_found(Communicator& alone, const Site& site, FoundDataset found);

/// Which dataset a file belongs to, by its name: the newest of several.
using FileOwners = std::map<std::string, DatasetInfo>;
Result<FileOwners> owners_of_files(Files& files, const PrefixFolder& folder,
                                   const Listing& listing);

}  // namespace cairn
