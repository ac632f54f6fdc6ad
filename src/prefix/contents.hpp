// Reads what is in a prefix directory: without a lock, and without changing anything.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "files/files.hpp"
#include "prefix/prefix_folder.hpp"
#include "records/dataset_record.hpp"
#include "records/owner_record.hpp"
#include "transfer/io_threads.hpp"

namespace cairn {

/// Other errors are transient: for example, the file system is unavailable or full.
inline bool is_damage(Code code) {
  return code == Code::corrupt || code == Code::lost || code == Code::not_found;
}

/// Why something is unknown, or could not be used.
struct Trouble {
  std::string text;
  bool may_pass = false;  ///< the reason is transient: it is worth trying again
};

/// Newest first.
using Listing = std::vector<DatasetRecord>;

/// Keeps the order.
void insert(Listing& listing, DatasetRecord record);

/// By UUID; null if it is not listed.
const DatasetRecord* find_in(const Listing& listing, const Uuid& uuid);

/// The newest of that name; null if there is none, or the name is empty.
const DatasetRecord* find_named(const Listing& listing, const std::string& name);

/// A dataset of the listing has files that still have their staged names.
bool has_unsettled(const Listing& listing);

/// The file `listing`, a copy of all records. Nothing if it is missing or damaged.
std::optional<Listing> read_copy(Files& files, const PrefixFolder& folder);

/// The record in the directory of a dataset; nothing if it has none.
Result<std::optional<DatasetRecord>> read_dataset_record(Files& files, const std::string& folder);

/// A dataset whose record cannot be read now, but may be good: the error was transient, or the
/// record has a newer format.
struct UnreadDataset {
  std::string folder;  ///< its path
  Uuid uuid;           ///< from the name of the directory
  std::string why;
  bool unsettled = false;  ///< some of its files may still have their staged names
};

/// Puts the outcome of reading a dataset's record where it belongs: into the listing, `damaged`, or
/// `unread` if it may be good. Does nothing if an owner has moved the dataset meanwhile.
void sort_in(Files& files, const std::string& folder, Result<std::optional<DatasetRecord>>&& read,
             Listing& listing, std::vector<std::string>& damaged,
             std::vector<UnreadDataset>& unread);

/// The records of all datasets that have their directories in `folder`. `damaged` gets the messages
/// for records that cannot be read; `unread`, if given, those that may be good. Threads of `io`, if
/// given, do the reading: there may be many records.
Result<Listing> read_records(Files& files, const std::string& folder,
                             std::vector<std::string>& damaged, const IoThreads* io = nullptr,
                             std::vector<UnreadDataset>* unread = nullptr);

/// All datasets of the index, from the file `listing` or, if it is missing, from the records. No
/// directory is an empty listing.
Result<Listing> read_listing(Files& files, const PrefixFolder& folder,
                             std::vector<std::string>& damaged, const IoThreads* io = nullptr,
                             std::vector<UnreadDataset>* unread = nullptr);

/// Dropped datasets.
struct Dropped {
  Listing listing;  ///< can be put back; newest first
  std::vector<UnreadDataset> unread;
  std::vector<Uuid> damaged;  ///< from the names of their directories

  bool has(const Uuid& uuid) const;
};

/// Reads the records, because dropped datasets have no listing.
Result<Dropped> read_dropped(Files& files, const PrefixFolder& folder);

/// A dataset's directory in the directory of an epoch: what an owner has begun. It may have died
/// since.
struct BegunFolder {
  std::string path;
  std::uint64_t epoch = 0;
  Uuid uuid;
  /// planned (also if it is unknown now whether there is a plan), deleting, dropped (being dropped
  /// or put back), or absent (a flush without a plan).
  PrefixState state = PrefixState::absent;
};
Result<std::vector<BegunFolder>> begun_folders(Files& files, const PrefixFolder& folder);

/// The state of a dataset, from all lists that may name it. The index decides first, then `begun`,
/// `deleted` and `dropped`, and last `attempts` (docs/format/states.md).
PrefixState state_in_prefix(const Uuid& uuid, const Listing& listing,
                            const std::vector<UnreadDataset>& unread, const Dropped& dropped,
                            const Listing& attempts, const Listing& deleted,
                            const std::vector<BegunFolder>& begun = {});

/// No run needs this checkpoint any more: the listing has a newer one that restarts can use. Never
/// true for an output.
bool is_outlived(const DatasetInfo& dataset, const Listing& listing);

/// The list `attempts`: see Keeper::attempts().
Result<Listing> read_attempts(Files& files, const PrefixFolder& folder);

/// The list `deleted`: see Keeper::deleted(). Empty if damaged; `damage` then gets a message. Fails
/// if it cannot be read now, because deleted datasets would come back.
Result<Listing> read_deleted(Files& files, const PrefixFolder& folder,
                             std::string* damage = nullptr);

/// The name of the current checkpoint; empty if there is none. If the file is damaged, the name is
/// empty, and `damage` gets a message: a lost name must not make the directory unusable.
Result<std::string> read_current(Files& files, const PrefixFolder& folder,
                                 std::string* damage = nullptr);

/// The name of the checkpoint that is current for the next restart, if the file `current` names
/// `named`. The newest checkpoint becomes current when its files get their own names, which a run
/// does before it restarts. So an unsettled newest checkpoint is current already: otherwise a run
/// that cannot settle it would take an older one, and lose work.
std::string current_in(const Listing& listing, const std::string& named);

/// The directories with what `cairn scavenge` saved from the caches of dead jobs, each with the
/// layout of a cache: one per node, and `rebuilt`. Includes those that cannot be read now.
Result<std::vector<std::string>> saved_caches(Files& files, const PrefixFolder& folder);

/// One of those has a part of the dataset.
Result<bool> is_saved(Files& files, const PrefixFolder& folder, const DatasetInfo& dataset);

/// The record of the owner; nothing if there never was one.
Result<std::optional<OwnerRecord>> read_owner(Files& files, const PrefixFolder& folder);

/// A later owner has closed the epoch of `me`; or another directory is at this path.
bool is_closed(Files& files, const PrefixFolder& folder, const OwnerRecord& me);

/// Fails if the directory at the path of the prefix directory is not, or may not be, the one that a
/// run has found there: nothing in it counts then. Local, from any thread.
using IsItself = std::function<Status()>;

/// Fails with busy if a later owner has closed the epoch of `me`, or with the error of `is_itself`.
Status check_rights(Files& files, const PrefixFolder& folder, const OwnerRecord& me,
                    const IsItself& is_itself);

/// The names of files and directories in `folder`; none if it does not exist.
Result<std::vector<std::string>> names_in(Files& files, const std::string& folder);

/// Those names that begin with `start`.
std::vector<std::string> with_start(const std::vector<std::string>& names, std::string_view start);

/// The numbers of "epoch.7" and the like, for a `start` of "epoch.".
std::vector<std::uint64_t> numbers_after(std::string_view start,
                                         const std::vector<std::string>& names);

}  // namespace cairn
