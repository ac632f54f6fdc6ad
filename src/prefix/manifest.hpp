// The records of all ranks of a dataset, a few ranks to a file (docs/format/prefix.md).
#pragma once

#include <functional>
#include <set>
#include <span>

#include "comm/communicator.hpp"
#include "files/files.hpp"
#include "prefix/prefix_folder.hpp"
#include "records/rank_record.hpp"

namespace cairn {

/// So that neither the number of files nor what one of them holds grows beyond measure.
inline constexpr std::uint32_t ranks_per_manifest = 64;

/// No more of it is read.
inline constexpr std::uint64_t largest_manifest = std::uint64_t{1} << 30;

/// How the parts of a dataset are dealt out to the ranks of a run: as many to each, one after the
/// other.
class Deal {
 public:
  Deal(std::uint64_t parts, int ranks) : parts_(parts), ranks_(static_cast<std::uint64_t>(ranks)) {}

  std::uint64_t first(int rank) const { return parts_ * static_cast<std::uint64_t>(rank) / ranks_; }
  std::uint64_t end(int rank) const { return first(rank + 1); }
  int rank_of(std::uint64_t part) const {
    return static_cast<int>(((part + 1) * ranks_ - 1) / parts_);
  }
  std::uint64_t parts() const { return parts_; }

 private:
  std::uint64_t parts_;
  std::uint64_t ranks_;
};

/// The records that a process has of a dataset, and where the others are.
struct HeldRecords {
  std::set<int> ranks;                         ///< whose records these are
  std::function<Result<Blob>(int rank)> seal;  ///< one of them, encoded
  /// Which process has the record of a rank. Asked where that is dealt a manifest's first rank.
  std::function<int(int rank)> holder_of;
};

/// Of processes each of which has the records that are dealt to it. `mine` must outlive it.
HeldRecords dealt_records(Communicator& comm, const Deal& deal, std::span<const RankRecord> mine);

using TakeManifest = std::function<void(std::uint32_t number, Blob content)>;

/// Collective. Calls `take` with each manifest, in the process to which its first rank is dealt: it
/// holds the records of no more ranks. Errors are local.
Status gather_manifests(Communicator& comm, const Deal& deal, const HeldRecords& held,
                        const TakeManifest& take);

/// Collective. Writes all manifests into `folder`. Errors are local.
Status write_manifests(Communicator& comm, Files& files, const std::string& folder,
                       const Deal& deal, const HeldRecords& held);
/// The same where each process has the records that are dealt to it.
Status write_manifests(Communicator& comm, Files& files, const std::string& folder,
                       const Deal& deal, std::span<const RankRecord> mine);

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
