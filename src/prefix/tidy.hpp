// Finishes or removes the incomplete work of earlier runs in the prefix directory.
#pragma once

#include "prefix/flush_plan.hpp"

namespace cairn {

/// What tidy() has found, the same on all ranks, also if it fails.
struct Tidied {
  std::vector<std::string> given_up;     ///< withdrawn flushes: a line for each, with the reason
  std::vector<DatasetRecord> published;  ///< datasets whose flush was finished
  std::vector<std::string> kept;         ///< deletions that left files: lines of said_of_kept()
  /// Folders of withdrawn flushes with a damaged manifest: the places of some staged files are
  /// unknown. The folders stay until remove_strays() has searched all directories.
  std::vector<std::string> damaged;
  /// Folders of datasets for which mark_replaced() failed, and must be called again.
  std::vector<std::string> unmarked;
};

/// The remedy for a folder in `damaged`.
std::string remedy_for_damaged(const std::string& folder);

enum class Unfinished { removed, left };

/// Collective. Gives files of published datasets their own names, and removes those of deleted
/// ones. An unfinished flush is finished if every part of it is done, or is `cached` in a process
/// of this run. Otherwise its staged files are removed; or, if `cached` may not be everything that
/// exists, left to a later run. One rank reads each manifest, and so do the ranks that have a part
/// to do. Errors are agreed; the rest is left for the next call, and is harmless.
Status tidy(Communicator& comm, const Site& site, const std::vector<CachedPart>& cached,
            Unfinished unfinished, Tidied* account = nullptr);

}  // namespace cairn
