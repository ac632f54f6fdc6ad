// The records of all ranks of a dataset, a few ranks to a file (docs/format/prefix.md).
#pragma once

#include "comm/communicator.hpp"
#include "files/files.hpp"
#include "prefix/prefix_folder.hpp"
#include "records/rank_record.hpp"

namespace cairn {

/// So that neither the number of files nor what one of them holds grows beyond measure.
inline constexpr std::uint32_t ranks_per_manifest = 64;

/// No more of it is read.
inline constexpr std::uint64_t largest_manifest = std::uint64_t{1} << 30;

/// Collective. The first rank of each manifest writes it into `folder`. Errors are local.
Status write_manifests(Communicator& comm, Files& files, const std::string& folder,
                       const RankRecord& mine);

/// Local. Writes one, durable, of records that are encoded one behind the other. bad_argument if
/// they are more than can be read.
Status write_manifest(Files& files, const std::string& folder, std::uint32_t number, Bytes records);

/// Local. The record of `rank` in the dataset whose folder this is. corrupt if there is none.
Result<RankRecord> read_from_manifest(Files& files, const std::string& folder, int rank,
                                      std::uint32_t ranks_in_each);

struct Manifest {
  std::vector<RankRecord> records;  ///< those that are whole
  bool whole = true;                ///< there is nothing else in it
};

/// Local.
Result<Manifest> read_manifest(Files& files, const std::string& path);

}  // namespace cairn
