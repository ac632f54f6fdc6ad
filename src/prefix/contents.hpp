// What is in a prefix directory, as anybody may read it: without a lock, and changing nothing.
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

/// What failed for another reason, a file system that is away or full, may be done the next time.
inline bool is_damage(Code code) {
  return code == Code::corrupt || code == Code::lost || code == Code::not_found;
}

/// Why something is not known, or could not be had.
struct Trouble {
  std::string text;
  bool may_pass = false;  ///< it may be gone when this is asked again
};

/// Newest first.
using Listing = std::vector<DatasetRecord>;

/// Where it belongs.
void insert(Listing& listing, DatasetRecord record);

/// Null if it is not there.
const DatasetRecord* find_in(const Listing& listing, const Uuid& uuid);

/// Files of one of these are still to be given their names.
bool has_unsettled(const Listing& listing);

/// The listing, if there is one. A damaged one is only a damaged copy, and as good as none.
std::optional<Listing> read_copy(Files& files, const PrefixFolder& folder);

/// The record in the folder of a dataset; nothing if there is none.
Result<std::optional<DatasetRecord>> read_dataset_record(Files& files, const std::string& folder);

/// A dataset that is there and may be good, though its record cannot be read now: an error that may
/// pass, or a newer format.
struct UnreadDataset {
  std::string folder;  ///< its path
  Uuid uuid;           ///< by the name of that
  std::string why;
  bool unsettled = false;  ///< files of it may still have to be given their names
};

/// io where one of these was begun no earlier than `from`: then it is not known `what`.
Status refuse_unread(const std::vector<UnreadDataset>& unread, std::string_view what,
                     const Uuid& from = {});

/// io where one of these, begun before `newer` if that is given, is unsettled: its files would get
/// their names after those of something newer, which may have the same.
Status refuse_unsettled(const std::vector<UnreadDataset>& unread,
                        const std::optional<Uuid>& newer = {});

/// io where one of these makes it unknown whether the files of this dataset may have their names: a
/// newer one may have the same, and an older one may still be given them.
Status refuse_names(const std::vector<UnreadDataset>& unread, const Uuid& dataset);

/// Where the record in the folder of a dataset was read with this outcome: to the listing, to
/// `damaged`, or to `unread` if it may be good; nowhere if its owner has moved it meanwhile.
void sort_in(Files& files, const std::string& folder, Result<std::optional<DatasetRecord>>&& read,
             Listing& listing, std::vector<std::string>& damaged,
             std::vector<UnreadDataset>& unread);

/// Those of all datasets that have their folders in `folder`. What cannot be read is left out, and
/// named in `damaged`; where `unread` is given, that has what may be good. By `io`, if there is
/// one: there may be many.
Result<Listing> read_records(Files& files, const std::string& folder,
                             std::vector<std::string>& damaged, const IoThreads* io = nullptr,
                             std::vector<UnreadDataset>* unread = nullptr);

/// What is there, from the listing or, where there is none, from the records. No folder at all is
/// an empty listing.
Result<Listing> read_listing(Files& files, const PrefixFolder& folder,
                             std::vector<std::string>& damaged, const IoThreads* io = nullptr,
                             std::vector<UnreadDataset>* unread = nullptr);

/// What was dropped.
struct Dropped {
  Listing listing;  ///< what could be put back, newest first
  std::vector<UnreadDataset> unread;
  std::vector<Uuid> damaged;  ///< by the names of their folders

  bool has(const Uuid& uuid) const;
};

/// Needs the records, as these are few.
Result<Dropped> read_dropped(Files& files, const PrefixFolder& folder);

/// A dataset's folder in that of an epoch: what an owner has begun, and may have died before its
/// end.
struct BegunFolder {
  std::string path;
  std::uint64_t epoch = 0;
  Uuid uuid;
  /// planned; deleting; dropped, also where it was being put back; absent for a flush without plan.
  PrefixState state = PrefixState::absent;
};
Result<std::vector<BegunFolder>> begun_folders(Files& files, const PrefixFolder& folder);

/// The state of a dataset, by all lists that may name it. What the index says comes first, then
/// what was begun, and last what restarts from the caches have come to.
PrefixState state_in_prefix(const Uuid& uuid, const Listing& listing,
                            const std::vector<UnreadDataset>& unread, const Dropped& dropped,
                            const Listing& attempts, const Listing& deleted,
                            const std::vector<BegunFolder>& begun = {});

/// A checkpoint that nothing restarts from any more: a newer one is there, and whole. What is an
/// output as well is none.
bool is_outlived(const DatasetInfo& dataset, const Listing& listing);

/// What Keeper::attempts() says.
Result<Listing> read_attempts(Files& files, const PrefixFolder& folder);

/// What Keeper::deleted() says. One that is damaged tells of nothing, and `damage` of what follows;
/// one that cannot be read is an error, as what was deleted would come back.
Result<Listing> read_deleted(Files& files, const PrefixFolder& folder,
                             std::string* damage = nullptr);

/// The name of the current checkpoint; empty if there is none. A file that is damaged names none,
/// and `damage` tells of it: what it said is lost for good, and must not lock the directory.
Result<std::string> read_current(Files& files, const PrefixFolder& folder,
                                 std::string* damage = nullptr);

/// The name of the checkpoint that is current for the next restart, where the file names `named`:
/// the newest checkpoint becomes current when its files get their own names, and a run does that
/// before it restarts. If that fails, a run that takes an older checkpoint would lose what the
/// program computed.
std::string current_in(const Listing& listing, const std::string& named);

/// The folders that hold what was saved from the caches of dead jobs, each laid out as a cache: one
/// for each node, and that of what was rebuilt; also those that cannot be looked at now.
Result<std::vector<std::string>> saved_caches(Files& files, const PrefixFolder& folder);

/// Whether there is something of the dataset in one of those.
Result<bool> is_saved(Files& files, const PrefixFolder& folder, const DatasetInfo& dataset);

/// Nothing if nobody ever was.
Result<std::optional<OwnerRecord>> read_owner(Files& files, const PrefixFolder& folder);

/// Of files and folders in `folder`; none if it is not there.
Result<std::vector<std::string>> names_in(Files& files, const std::string& folder);

/// Those that begin so.
std::vector<std::string> with_start(const std::vector<std::string>& names, std::string_view start);

/// The numbers of "epoch.7" and the like, for a `start` of "epoch.".
std::vector<std::uint64_t> numbers_after(std::string_view start,
                                         const std::vector<std::string>& names);

}  // namespace cairn
