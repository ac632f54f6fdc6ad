// Ends what earlier runs have left half done in the prefix directory.
#pragma once

#include "prefix/flush_plan.hpp"

namespace cairn {

/// What tidy() has come upon, the same on all ranks, also before an error.
struct Tidied {
  std::vector<std::string> given_up;     ///< flushes: a line for each, with the reason
  std::vector<DatasetRecord> published;  ///< the flush was carried to its end
  std::vector<std::string> kept;  ///< deletions that left files: a line for each, as said_of_kept()
  /// Folders of flushes that are given up, and of which a manifest is damaged: nobody knows any
  /// more where all staged files lie. They stay until somebody has looked everywhere: strays.hpp.
  std::vector<std::string> damaged;
  /// Folders of datasets for which mark_replaced() failed, and is to be called again.
  std::vector<std::string> unmarked;
};

/// What to do about one of the damaged.
std::string remedy_for_damaged(const std::string& folder);

enum class Unfinished { removed, left };

/// Collective. Files of published datasets get their own names; those of deleted ones go. A flush
/// that was not ended is carried on where every part of it was done, or is `cached` in some process
/// of this run; else the files that were staged for it go, or, where what is `cached` here need not
/// be all that there is, are left to a run that knows more. Every manifest is read by one rank, and
/// by those who have a part to do. Errors are agreed; what is left then is left for the next time,
/// and harms nothing.
Status tidy(Communicator& comm, const Site& site, const std::vector<CachedPart>& cached,
            Unfinished unfinished, Tidied* account = nullptr);

}  // namespace cairn
