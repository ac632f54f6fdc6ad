// What is found in the stores of this node when a run begins.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "cache/store.hpp"

namespace cairn {

/// An intact record with the bytes it was read from. Of an outline (RecordDetail) neither these nor
/// its files, checksums and names of nodes.
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
  std::vector<HeldRecord> kept;  ///< records of others, kept for them
  bool damaged = false;          ///< there is a record file without an intact record of the owner
  bool newer = false;            ///< there is a record of a newer format

  /// Whether it can be read or not. One that was saved has it last.
  bool has_record() const { return !own.empty() || damaged || newer; }
};

/// The parts of one dataset that this rank looks after.
struct HeldDataset {
  std::size_t store = 0;
  std::uint64_t number = 0;
  std::vector<HeldPart> parts;

  /// The owner's record of that generation, prepared or committed; null if none is intact.
  const HeldRecord* own_record(int owner, std::uint64_t generation) const;
};

/// By identity, oldest first.
using Catalog = std::map<Uuid, HeldDataset>;

/// Decides whether this rank looks after what is found of rank `owner` in store number `store`.
using LooksAfter = std::function<bool(std::size_t store, int owner)>;

/// What becomes of a dataset's folder with nothing in it, as a crash may leave it. Who is not the
/// job itself keeps it: it may be about to be filled.
enum class EmptyFolders { removed, kept };

/// How much of the records stays in memory. An outline is enough to tell which datasets there are
/// and which ranks make a set, and takes about as much for a rank with much data as for one with
/// little.
enum class RecordDetail { all, outline };

/// Reads the records of all parts this rank looks after. A folder that cannot be listed is an
/// error; a damaged record is not: it is told in the part. Names that are not Cairn's are passed
/// over. Where `unreadable` is given, a dataset whose folder cannot be listed is named there, and
/// does not keep the others from being found.
Result<Catalog> read_catalog(Files& files, const std::vector<Store>& stores,
                             const LooksAfter& looks_after,
                             EmptyFolders empty = EmptyFolders::removed,
                             RecordDetail detail = RecordDetail::all,
                             std::vector<std::string>* unreadable = nullptr);

/// The rank whose folder this is, as its name tells.
std::optional<int> owner_of(const RankFolder& folder);

/// What is in one rank's folder.
HeldPart read_part(Files& files, const RankFolder& folder, int owner);
/// The same without records of other datasets: copied there by hand, they describe nothing of it.
HeldPart read_part(Files& files, const RankFolder& folder, int owner, const Uuid& dataset);

/// Removes the spare parity files (Store::spare) and what was not fetched to its end
/// (Store::fetch_folder) that earlier runs have left, of the ranks that `looks_after` names.
Status drop_leftovers(Files& files, const std::vector<Store>& stores,
                      const LooksAfter& looks_after);

}  // namespace cairn
