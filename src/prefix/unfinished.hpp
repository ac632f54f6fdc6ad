// Reads what dead owners have left in the folders of their epochs, without being the owner, and
// decides whether a flush of theirs may still be finished.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "prefix/contents.hpp"

namespace cairn {

/// A flush that was planned and not published yet, of a dead or a live run.
struct UnfinishedFlush {
  DatasetRecord plan;
  std::set<int> done;       ///< ranks whose parts are durable there
  std::string folder = {};  ///< of the plan
  std::uint64_t epoch = 0;  ///< of its owner

  /// True if these ranks have all parts that are not done.
  bool is_done_but_for(const std::set<int>& ranks) const;
};

/// Collective, over ranks with the same prefix directory. Returns the flushes that may still be
/// finished: none of their files would replace a newer one.
Result<std::vector<UnfinishedFlush>> read_unfinished(Communicator& comm, Files& files,
                                                     const PrefixFolder& folder,
                                                     const Listing& listing);

/// Deleted datasets that may still have files, as their removal has not ended.
Result<Listing> read_half_deleted(Files& files, const PrefixFolder& folder);

/// Datasets that were being dropped or restored, and are in neither place. The next owner drops
/// them.
Result<Listing> read_in_transit(Files& files, const PrefixFolder& folder);

/// A complete plan in `pending`, of this epoch.
struct PlanFound {
  const DatasetRecord& plan;
  const std::string& pending;
  std::uint64_t epoch;
};

/// Local. True if the dataset was dropped or deleted since.
Result<bool> is_unwanted(Files& files, const PrefixFolder& folder, const PlanFound& found,
                         const Listing& deleted);

/// The datasets whose files a plan of this UUID must not replace.
Listing newer_than(const Listing& listing, const Uuid& uuid);

/// Collective. True if a file of the plan in `pending` has the name of a file that was written
/// since, by one of the `newer` datasets or by another program; also if that is unknown, as a
/// manifest is damaged. One rank reads each manifest, and no rank gets all names. Transient errors
/// of reading are errors. Errors are agreed.
Result<bool> would_replace(Communicator& comm, Files& files, const PrefixFolder& folder,
                           const std::string& pending, const DatasetRecord& plan,
                           const Listing& newer);

}  // namespace cairn
