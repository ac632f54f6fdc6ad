// The datasets and records that the stores of this node contain when a run begins.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "cache/store.hpp"

namespace cairn {

inline constexpr std::uint64_t largest_record_bytes = 1ULL << 30;  ///< of a record file

/// An intact record, and the bytes from which it was read. An outline (RecordDetail) has neither
/// these bytes nor the record's files, checksums and names of nodes.
struct HeldRecord {
  RankRecord record;
  Blob sealed;
  bool committed = false;  ///< from `record`; else from `record.new`
};

/// One rank's part of a dataset.
struct HeldPart {
  RankFolder folder;
  int owner = 0;
  std::vector<HeldRecord> own;   ///< records of the owner: committed, prepared
  std::vector<HeldRecord> kept;  ///< records of other ranks, kept for them
  bool damaged = false;          ///< a record file exists, but has no intact record of the owner
  bool unread = false;           ///< a record file could not be read now; it may be good
  bool newer = false;            ///< a record has a newer format

  /// A record exists, readable or not. The copy of a part writes the record last.
  bool has_record() const { return !own.empty() || damaged || newer; }
};

/// The parts of one dataset that this rank manages.
struct HeldDataset {
  std::size_t store = 0;
  std::uint64_t number = 0;
  std::vector<HeldPart> parts;

  /// The owner's record of that generation, prepared or committed; null if none is intact.
  const HeldRecord* own_record(int owner, std::uint64_t generation) const;
  /// A record file of some part could not be read now.
  bool has_unread() const;
};

/// By identity, oldest first.
using Catalog = std::map<Uuid, HeldDataset>;

/// True if this rank manages the parts of rank `owner` in store number `store`.
using LooksAfter = std::function<bool(std::size_t store, int owner)>;

/// What happens to an empty directory of a dataset, as a crash may leave it. Only the job itself
/// may remove it: for any other process, the job may be about to fill it.
enum class EmptyFolders { removed, kept };

/// How much of the records stays in memory. An outline shows which datasets exist and which ranks
/// are in a set; its size does not depend on the amount of data.
enum class RecordDetail { all, outline };

/// Reads the records of all parts that this rank manages. Fails if a directory cannot be listed. A
/// damaged record is no error: the part is marked as damaged. Ignores names that are not Cairn's.
/// With `unreadable`, adds the errors of directories of datasets that cannot be listed there, and
/// goes on.
Result<Catalog> read_catalog(Files& files, const std::vector<Store>& stores,
                             const LooksAfter& looks_after,
                             EmptyFolders empty = EmptyFolders::removed,
                             RecordDetail detail = RecordDetail::all,
                             std::vector<std::string>* unreadable = nullptr);

/// The rank in the name of the directory.
std::optional<int> owner_of(const RankFolder& folder);

/// Reads the records in one rank's directory.
HeldPart read_part(Files& files, const RankFolder& folder, int owner);
/// The same, but ignores records of other datasets, which a user may have copied there.
HeldPart read_part(Files& files, const RankFolder& folder, int owner, const Uuid& dataset);

/// Removes what earlier runs have left of the ranks that `looks_after` selects: spare parity files
/// (Store::spare) and unfinished fetches (Store::fetch_folder).
Status drop_leftovers(Files& files, const std::vector<Store>& stores,
                      const LooksAfter& looks_after);

}  // namespace cairn
