// Finishes or undoes what earlier runs left unfinished in the prefix directory.
#pragma once

#include "prefix/flush_plan.hpp"

namespace cairn {

/// What tidy() found and did, the same on all ranks. Valid also after an error.
struct Tidied {
  std::vector<std::string> given_up;     ///< flushes: a line for each, with the reason
  std::vector<DatasetRecord> published;  ///< their flushes are complete now
  std::vector<DatasetRecord> settled;    ///< published before, their files have their names now
  std::vector<std::string> kept;  ///< deletions that left files: a line for each, as said_of_kept()
  /// Directories of flushes that are given up and have a damaged manifest: it is unknown where all
  /// their staged files are. They stay until remove_strays() has searched the prefix directory.
  std::vector<std::string> damaged;
  /// Directories of datasets for which mark_replaced() failed: call it again.
  std::vector<std::string> unmarked;
};

/// The remedy for a folder in `damaged`.
std::string remedy_for_damaged(const std::string& folder);

enum class Unfinished { removed, left };

/// Collective. Gives the files of published datasets their own names, and removes those of deleted
/// ones. Completes an unfinished flush if each part is done, or is `cached` in a process of this
/// run. Otherwise it removes the staged files (`Unfinished::removed`), or leaves them to a run that
/// may have more caches (`left`). One rank reads each manifest, and those that have a part to do.
/// Errors are agreed; what is unfinished then does no harm, and the next call tries again.
///
Status tidy(Communicator& comm, const Site& site, const std::vector<CachedPart>& cached,
            Unfinished unfinished, Tidied* account = nullptr);

}  // namespace cairn
