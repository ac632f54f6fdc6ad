// Reads the content of a prefix directory, without a lock and without any change. Any process may
// do so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "files/files.hpp"
#include "prefix/prefix_folder.hpp"
#include "records/dataset_record.hpp"
#include "records/owner_record.hpp"
#include "transfer/io_threads.hpp"

namespace cairn {

/// True for damaged and missing data. After another error, such as a file system that is
/// unavailable or full, a later attempt may succeed.
inline bool is_damage(Code code) {
  return code == Code::corrupt || code == Code::lost || code == Code::not_found;
}

/// Why something is unknown or unavailable.
struct Trouble {
  std::string text;
  bool may_pass = false;  ///< a transient error: a later attempt may succeed
};

/// Newest first.
using Listing = std::vector<DatasetRecord>;

/// Inserts a record in its place.
void insert(Listing& listing, DatasetRecord record);

/// Null if the listing does not have it.
const DatasetRecord* find_in(const Listing& listing, const Uuid& uuid);

/// True if files of one of these still need their final names.
bool has_unsettled(const Listing& listing);

/// The listing, if there is one. A damaged listing counts as missing, as it is only a copy of the
/// records.
std::optional<Listing> read_copy(Files& files, const PrefixFolder& folder);

/// The record in the folder of a dataset; nothing if there is none.
Result<std::optional<DatasetRecord>> read_dataset_record(Files& files, const std::string& folder);

/// A published dataset that may be good, although its record cannot be read now: a transient error,
/// or a newer format.
struct UnreadDataset {
  std::string folder;  ///< its path
  Uuid uuid;           ///< from the name of the folder
  std::string why;
  bool unsettled = false;  ///< its files may still need their final names
};

/// io if one of these began at `from` or later: then `what` is unknown.
Status refuse_unread(const std::vector<UnreadDataset>& unread, std::string_view what,
                     const Uuid& from = {});

/// io if one of these, begun before `newer` if that is given, is unsettled: its files would get
/// their names after those of a newer dataset, which may have the same names.
Status refuse_unsettled(const std::vector<UnreadDataset>& unread,
                        const std::optional<Uuid>& newer = {});

/// io if, because of one of these, it is unknown whether the files of this dataset may get their
/// names: a newer dataset may have the same names, and an older one may still get them.
Status refuse_names(const std::vector<UnreadDataset>& unread, const Uuid& dataset);

/// Where the record in the folder of a dataset was read with this outcome: to the listing, to
/// `damaged`, or to `unread` if it may be good; nowhere if its owner has moved it meanwhile.
void sort_in(Files& files, const std::string& folder, Result<std::optional<DatasetRecord>>&& read,
             Listing& listing, std::vector<std::string>& damaged,
             std::vector<UnreadDataset>& unread);

/// The records of all datasets with folders in `folder`. Skips unreadable ones and adds them to
/// `damaged`, or, if they may be good and `unread` is given, to `unread`. Reads with the threads of
/// `io` if given, as there may be many.
Result<Listing> read_records(Files& files, const std::string& folder,
                             std::vector<std::string>& damaged, const IoThreads* io = nullptr,
                             std::vector<UnreadDataset>* unread = nullptr);

/// The published datasets, from the listing or, if there is none, from the records. Empty if the
/// directory does not exist.
Result<Listing> read_listing(Files& files, const PrefixFolder& folder,
                             std::vector<std::string>& damaged, const IoThreads* io = nullptr,
                             std::vector<UnreadDataset>* unread = nullptr);

/// The dropped datasets.
struct Dropped {
  Listing listing;  ///< datasets that can be restored, newest first
  std::vector<UnreadDataset> unread;
  std::vector<Uuid> damaged;  ///< from the names of their folders

  bool has(const Uuid& uuid) const;
};

/// Needs the records, as these are few.
Result<Dropped> read_dropped(Files& files, const PrefixFolder& folder);

/// A dataset's folder in that of an epoch: an operation that an owner has begun, and perhaps not
/// finished before its death.
struct BegunFolder {
  std::string path;
  std::uint64_t epoch = 0;
  Uuid uuid;
  /// planned; deleting; dropped, also if it was being restored; absent for a flush without a plan.
  PrefixState state = PrefixState::absent;
};
Result<std::vector<BegunFolder>> begun_folders(Files& files, const PrefixFolder& folder);

/// The state of a dataset, from all lists that may have it. The index has precedence, then begun
/// operations, and then the results of restarts from the caches.
PrefixState state_in_prefix(const Uuid& uuid, const Listing& listing,
                            const std::vector<UnreadDataset>& unread, const Dropped& dropped,
                            const Listing& attempts, const Listing& deleted,
                            const std::vector<BegunFolder>& begun = {});

/// True for a checkpoint from which no run restarts any more, as a newer complete one exists. False
/// if it is an output too.
bool is_outlived(const DatasetInfo& dataset, const Listing& listing);

/// The list of Keeper::attempts().
Result<Listing> read_attempts(Files& files, const PrefixFolder& folder);

/// The list of Keeper::deleted(). Empty if it is damaged; then `damage` has the consequence. Fails
/// if it cannot be read, as deleted datasets would come back.
Result<Listing> read_deleted(Files& files, const PrefixFolder& folder,
                             std::string* damage = nullptr);

/// The name of the current checkpoint; empty if there is none. Also empty if the file is damaged,
/// which `damage` reports: its content is lost for good, and must not block the directory.
Result<std::string> read_current(Files& files, const PrefixFolder& folder,
                                 std::string* damage = nullptr);

/// The name of the checkpoint that will be current for the next restart, if the file has `named`:
/// the newest checkpoint becomes current when its files get their own names, which a run does
/// before it restarts. If that fails, a run with an older checkpoint would lose the computing since
/// then.
std::string current_in(const Listing& listing, const std::string& named);

/// The folders with data saved from the caches of dead jobs, each in the layout of a cache: one for
/// each node, and one for rebuilt parts. Includes folders that cannot be read now.
Result<std::vector<std::string>> saved_caches(Files& files, const PrefixFolder& folder);

/// True if one of those has something of the dataset.
Result<bool> is_saved(Files& files, const PrefixFolder& folder, const DatasetInfo& dataset);

/// Nothing if there has never been an owner.
Result<std::optional<OwnerRecord>> read_owner(Files& files, const PrefixFolder& folder);

/// The names of files and directories in `folder`; none if it does not exist.
Result<std::vector<std::string>> names_in(Files& files, const std::string& folder);

/// Those that begin with `start`.
std::vector<std::string> with_start(const std::vector<std::string>& names, std::string_view start);

/// The numbers of "epoch.7" and the like, for a `start` of "epoch.".
std::vector<std::uint64_t> numbers_after(std::string_view start,
                                         const std::vector<std::string>& names);

}  // namespace cairn
