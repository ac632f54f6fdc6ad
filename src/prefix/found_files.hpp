// Datasets made of files that somebody else has written into the prefix directory.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "prefix/publication.hpp"

namespace cairn {

/// What was recorded when a file was written.
struct RecordedFile {
  std::optional<std::uint64_t> size;
  std::optional<std::uint32_t> crc32;
};

/// What was recorded of all files of a dataset together.
struct RecordedTotals {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

struct FoundDataset {
  DatasetRecord record;  ///< info, job_id, and what is known of failures; the rest is filled in
  std::vector<std::vector<std::string>> files;  ///< of each rank, relative to the prefix directory
  std::string node;                             ///< that answers for them
  std::uint32_t block_bytes = 0;
  std::map<std::string, RecordedFile> recorded;  ///< by name; the files must be as it says
  std::optional<RecordedTotals> totals;
};

/// Collective; `found` counts on rank 0 only. Each rank reads its share of the files, first those
/// with a recorded CRC32 to compare it, then all to take their checksums, whatever number of ranks
/// wrote them; then they are published as a dataset in place. A file that several ranks name is
/// shared by them.
///
/// Errors are agreed: those of the files; invalid where one is no regular file, is named twice by a
/// rank, or changes meanwhile; corrupt where they are not as was recorded. Nothing was published
/// then. Files are never changed.
Result<FlushAccount> publish_found(Communicator& comm, const Site& site, FoundDataset found);

/// Which dataset a file belongs to, by its name: the newest of several. Of what cannot be read no
/// files are known; `troubles` tells of it.
using FileOwners = std::map<std::string, DatasetInfo>;
Result<FileOwners> owners_of_files(Files& files, const PrefixFolder& folder, const Listing& listing,
                                   std::vector<std::string>* troubles = nullptr);

}  // namespace cairn
