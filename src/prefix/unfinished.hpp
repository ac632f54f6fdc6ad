// What dead owners have left in the folders of their epochs, as anybody may read it, and whether a
// flush of theirs may still be carried on.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "prefix/contents.hpp"

namespace cairn {

/// A flush that was planned and not published yet: one that died, or one that is under way.
struct UnfinishedFlush {
  DatasetRecord plan;
  std::set<int> done;       ///< ranks whose part is durable there
  std::string folder = {};  ///< of the plan
  std::uint64_t epoch = 0;  ///< of its owner

  /// Whether these ranks have all that is left to be done.
  bool is_done_but_for(const std::set<int>& ranks) const;
};

/// Collective, for all of which the directory is the same. Those that may still be carried on: no
/// file of theirs would take the name of a newer one.
Result<std::vector<UnfinishedFlush>> read_unfinished(Communicator& comm, Files& files,
                                                     const PrefixFolder& folder,
                                                     const Listing& listing);

/// What was taken out, and of which there may still be files: their removal has not ended.
Result<Listing> read_half_deleted(Files& files, const PrefixFolder& folder);

/// What was being dropped, or put back, and is in neither place. The next owner drops it.
Result<Listing> read_in_transit(Files& files, const PrefixFolder& folder);

/// A plan that was made to its end, and that lies in `pending`, of this epoch.
struct PlanFound {
  const DatasetRecord& plan;
  const std::string& pending;
  std::uint64_t epoch;
};

/// Local. It was dropped or deleted since.
Result<bool> is_unwanted(Files& files, const PrefixFolder& folder, const PlanFound& found,
                         const Listing& deleted);

/// Those whose files those of a plan of this UUID must not replace.
Listing newer_than(const Listing& listing, const Uuid& uuid);

/// Collective. Whether a file of the plan in `pending` has the name of one that was written since,
/// be it of one of the `newer` datasets or of nobody's; also where nobody can know, as a manifest
/// is damaged. Each manifest is read by one rank, and no rank hears of all names. What only cannot
/// be read now is an error. Errors are agreed.
Result<bool> would_replace(Communicator& comm, Files& files, const PrefixFolder& folder,
                           const std::string& pending, const DatasetRecord& plan,
                           const Listing& newer);

}  // namespace cairn
