// The actions of cairn index that change datasets. index_changes.cpp has the table of them.
#pragma once

#include <string>

#include "prefix/site.hpp"
#include "recovery/remains.hpp"
#include "tools/index/index_changes.hpp"

namespace cairn {

/// What an action works with, in a process that owns the prefix directory.
struct IndexChange {
  const IndexCommand& command;
  Communicator& comm;  ///< of this process alone
  const Site& site;
  const Settings& settings;
  Keeper& keeper;
  const Log& log;
  Report report{};
  Status tidied{};         ///< tidy_up(), before the action
  Listing half_dropped{};  ///< before that; for drop
  Listing half_deleted{};  ///< before that; for delete

  /// The dataset of the command, in the index or among the dropped ones.
  Result<DatasetRecord> named() const;
  Result<DatasetRecord> named_of_dropped() const;
};

/// Finishes or undoes what earlier runs left. Flushes are left to the next run, which has the
/// caches; but build cancels them.
void tidy_up(IndexChange& change);

/// The error if no dataset has the name of the command.
tl::unexpected<Error> fail_as_unknown(const IndexCommand& command, const PrefixFolder& folder);

/// The command may be about a dataset that was dropped.
bool may_be_dropped(const IndexCommand& command);

/// The scavenged datasets of that name. If no record can be read any more, `deleted` has the name:
/// an earlier command has begun to remove the copies.
std::vector<const Remains*> saved_by_name(const std::vector<Remains>& saved, const Listing& deleted,
                                          const std::string& word);

/// Looks for the dataset of a command without owning the prefix directory: so nothing is made, and
/// no owner loses the directory, for a dataset that does not exist.
Status look_before(const IndexCommand& command, Files& files, const PrefixFolder& folder);

Status set_current(IndexChange& change);
Status drop_named(IndexChange& change);
Status drop_after(IndexChange& change);
Status put_back(IndexChange& change);
Status delete_named(IndexChange& change);
Status set_quarantine(IndexChange& change);
/// Makes the files of the command the newest checkpoint.
Status add_found(IndexChange& change);
/// Imports all complete datasets of SCR 3 that are not known yet, and which of them is current.
/// Those that cannot be imported are in `refused`, and are no error.
Status import_from_scr(IndexChange& change);

/// A message about a checkpoint that is now the current one: whether a restart uses it.
std::string said_of_current(const DatasetRecord& record);

}  // namespace cairn
