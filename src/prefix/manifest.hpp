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

/// Limits both the number of manifests and their size.
inline constexpr std::uint32_t ranks_per_manifest = 64;

/// The largest size that is read.
inline constexpr std::uint64_t largest_manifest = std::uint64_t{1} << 30;

/// How the parts of a dataset are divided among the ranks of a run: contiguous shares of equal
/// size.
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

/// The records of a dataset that a process has, and the places of the others.
struct HeldRecords {
  std::set<int> ranks;                         ///< the ranks of these records
  std::function<Result<Blob>(int rank)> seal;  ///< one of them, encoded
  /// The process that has the record of a rank. Called in processes whose share has the first rank
  /// of a manifest.
  std::function<int(int rank)> holder_of;
};

/// For processes that have the records of their shares. `mine` must outlive it.
HeldRecords dealt_records(Communicator& comm, const Deal& deal, std::span<const RankRecord> mine);

using TakeManifest = std::function<void(std::uint32_t number, Blob content)>;

/// Collective. Calls `take` with each manifest, in the process whose share has its first rank. No
/// process has more records than those of one manifest at a time. Errors are local.
Status gather_manifests(Communicator& comm, const Deal& deal, const HeldRecords& held,
                        const TakeManifest& take);

/// Collective. Writes all manifests into `folder`. Errors are local.
Status write_manifests(Communicator& comm, Files& files, const std::string& folder,
                       const Deal& deal, const HeldRecords& held);
/// The same if each process has the records of its share.
Status write_manifests(Communicator& comm, Files& files, const std::string& folder,
                       const Deal& deal, std::span<const RankRecord> mine);

/// Local. Writes one manifest durably; `records` are encoded records one after the other.
/// bad_argument if they are larger than the largest manifest.
Status write_manifest(Files& files, const std::string& folder, std::uint32_t number, Bytes records);

/// Local. The record of `rank` in the dataset whose folder this is. corrupt if there is none.
Result<RankRecord> read_from_manifest(Files& files, const std::string& folder, int rank,
                                      std::uint32_t ranks_in_each);

struct Manifest {
  std::vector<RankRecord> records;  ///< the intact records
  bool whole = true;                ///< it has no other bytes
};

/// Local.
Result<Manifest> read_manifest(Files& files, const std::string& path);

}  // namespace cairn
