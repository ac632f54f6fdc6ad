// The way in which a dataset is deleted from the prefix directory, by runs and by commands.
#pragma once

#include <functional>

#include "prefix/remove_files.hpp"

namespace cairn {

/// What happens if the record of another dataset, which may have the same files, cannot be read.
enum class BesideUnread {
  refused,  ///< nothing is deleted
  begun,    ///< the dataset is taken out, and only files in doubt stay until the next try
};

/// Local. The rules: fails if this dataset must not be deleted now. A rule that forbids a deletion
/// belongs here. begin_deletion() asks this first; so does a caller that removes copies before.
Status check_deletion(const Keeper& keeper, const DatasetRecord& record, BesideUnread unread);

/// Collective. Takes a listed or dropped dataset out of the index, so that no run imports it from
/// SCR again. Fails if a rule forbids it. `before`: on rank 0, when no rule forbids it and before
/// the dataset is taken out, removes its copies elsewhere; after an error of it the dataset stays.
/// Its files are still there: remove_files() comes next, which the next owner does otherwise.
/// Errors are agreed.
Status begin_deletion(Communicator& comm, const Site& site, const DatasetRecord& record,
                      BesideUnread unread, const std::function<Status(Keeper&)>& before = {});

/// Local. Adds these to the list `deleted`, if they are not in it: the caches of their jobs and
/// later rebuilds must not bring them back.
Status note_deleted(Keeper& keeper, const Listing& records);

}  // namespace cairn
