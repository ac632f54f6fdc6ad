// Makes one committed dataset whole again on the ranks of this run.
#pragma once

#include "base/log.hpp"
#include "cache/catalog.hpp"
#include "comm/communicator.hpp"
#include "config/settings.hpp"
#include "recovery/cached_dataset.hpp"
#include "redundancy/repair.hpp"

namespace cairn {

/// What it took, over all ranks.
struct RestoreAccount {
  std::int64_t rebuilt_ranks = 0;  ///< had no files anywhere
  std::int64_t moved_ranks = 0;    ///< had theirs on another node
  std::int64_t moved_bytes = 0;
  std::int64_t repaired_blocks = 0;  ///< data and parity, those of rebuilt ranks included
  std::int64_t repaired_bytes = 0;
  /// The first most_named of the rebuilt: "rank 2 (n1)"; on rank 0.
  std::vector<std::string> rebuilt_names;
};

/// "rebuilt rank 2 (n1), computed 3 MiB anew from redundancy (24 blocks)"; empty where
/// nothing had to be done.
std::string describe(const RestoreAccount& account);

/// What this rank has seen of its part of a dataset that cannot be restored.
struct PartSeen {
  bool is_only_one = false;  ///< it is where it was written, and no node can have another one
  bool unread = false;       ///< a record could not be read now
};

/// A part of that dataset has been moved, or made anew.
bool may_be_elsewhere(Files& files, const RankFolder& part);

/// Collective. Whether `why` (agreed) may be different in another try, or with other nodes.
CachedDataset::Repair chance_after(Communicator& comm, const Error& why, const PartSeen& mine);

/// Collective. As agree(), but lost goes before any other error: another try would not bring back
/// what is lost.
Status agree_lost_first(Communicator& comm, Status mine);

/// The line that says so, with what the user can do; without it where another line has said it.
std::string cannot_be_restored(const CachedDataset& dataset, const Error& why,
                               bool with_remedy = true);

/// Collective. `held` is what this rank looks after of the dataset (nothing, often, on a spare);
/// `generation` the committed encoding to restore; `dataset.store` and `.info.uuid`, `.info.number`
/// are set.
///
/// Finds every rank's record and files, wherever they are; moves files to their ranks; rebuilds
/// what is missing; commits again. Fills in `dataset`; its `parts` still hold the copies that are
/// elsewhere, for the caller to remove once what was made of them is as well protected as they
/// were. A crash at any point leaves all that was needed to begin with.
///
/// Where the ranks of `comm` are those of one set only, `set` says which ranks of the job they
/// are; empty: all, each with its own number. What was begun of a set that fails stays, for the
/// caller to remove when no other set is worked at.
///
/// Errors are agreed: lost, naming ranks and nodes, if it cannot be done.
Result<RestoreAccount> restore(Communicator& comm, Files& files, std::vector<Store>& stores,
                               const Settings& settings, const HeldDataset& held,
                               std::uint64_t generation, bool read_everything,
                               CachedDataset& dataset, const Log& log,
                               const std::vector<int>& set = {});

/// What restore() would find of this rank's part.
struct FoundPart {
  RankRecord record;
  std::string folder;            ///< where its files are; empty if they are nowhere
  bool record_is_whole = false;  ///< there, committed, with the copies it has to keep for others
  Examined examined;
};

/// Collective. What restore() would find, wherever it is; changes nothing. `can_heal` of all parts
/// says whether it could be done; without a record of every rank it could not: lost, naming ranks
/// and nodes. All ranks see all folders, as a Team does. `set` as above.
Result<FoundPart> examine(Communicator& comm, Files& files, std::vector<Store>& stores,
                          const Settings& settings, const HeldDataset& held,
                          std::uint64_t generation, bool read_everything, CachedDataset& dataset,
                          const Log& log, const std::vector<int>& set = {});

/// Collective. Reads every block of a usable dataset and repairs what is bad. On an agreed error
/// the dataset is marked unusable with the reason: lost if more is bad than its scheme can repair.
Status check_and_heal(Communicator& comm, Files& files, std::vector<Store>& stores,
                      const Settings& settings, CachedDataset& dataset, const Log& log);

}  // namespace cairn
