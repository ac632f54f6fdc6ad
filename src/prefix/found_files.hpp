// Datasets made of files that other programs have written into the prefix directory.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "prefix/publication.hpp"

namespace cairn {

/// Facts recorded when a file was written.
struct RecordedFile {
  std::optional<std::uint64_t> size;
  std::optional<std::uint32_t> crc32;
};

/// Facts recorded about all files of a dataset.
struct RecordedTotals {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

struct FoundDataset {
  DatasetRecord record;  ///< info, job_id, and known failures; the rest is filled in
  std::vector<std::vector<std::string>> files;  ///< of each rank, relative to the prefix directory
  std::string node;                             ///< the node recorded for these files
  std::uint32_t block_bytes = 0;
  std::map<std::string, RecordedFile> recorded;  ///< by name; the files must match it
  std::optional<RecordedTotals> totals;
};

/// Collective; Only rank 0 needs `found`. Each rank reads its share of the files, independent of
/// the number of ranks that wrote them: first those with a recorded CRC32 to compare it, then all
/// to take their checksums. Then the files are published as a dataset in place. A file that several
/// ranks have is shared by them.
///
/// Errors are agreed, and nothing is published then: errors of the files; invalid if a path is no
/// regular file, occurs twice for a rank, or changes meanwhile; corrupt if files differ from their
/// records. Files are never changed.
Result<FlushAccount> publish_found(Communicator& comm, const Site& site, FoundDataset found);

/// The dataset of each file name, the newest of several. Adds a line to `troubles` for a dataset
/// that cannot be read; its files are missing in the result.
using FileOwners = std::map<std::string, DatasetInfo>;
Result<FileOwners> owners_of_files(Files& files, const PrefixFolder& folder, const Listing& listing,
                                   std::vector<std::string>* troubles = nullptr);

}  // namespace cairn
