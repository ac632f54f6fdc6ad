// Reads what dead owners have left in the directories of their epochs, and decides whether a flush
// of theirs may be continued.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "prefix/contents.hpp"

namespace cairn {

/// A flush that has a plan and is not published yet: it died, or is under way.
struct UnfinishedFlush {
  DatasetRecord plan;
  std::set<int> done;       ///< ranks whose parts are durable there
  std::string folder = {};  ///< of the plan
  std::uint64_t epoch = 0;  ///< of its owner

  /// All parts that are not done are parts of these ranks.
  bool is_done_but_for(const std::set<int>& ranks) const;
};

/// Collective. All unfinished flushes that may be continued: none of their files would replace one
/// of a newer dataset. `unknown`, if given, gets the errors of plans that cannot be read now;
/// without it the first of them is the error: a flush that is not known must not count as none.
Result<std::vector<UnfinishedFlush>> read_unfinished(Communicator& comm, Files& files,
                                                     const PrefixFolder& folder,
                                                     const Listing& listing,
                                                     std::vector<std::string>* unknown = nullptr);

/// Datasets whose deletion has begun and not ended: some of their files may still exist.
Result<Listing> read_half_deleted(Files& files, const PrefixFolder& folder);

/// Datasets that were being dropped or put back when the owner died. The next owner drops them.
Result<Listing> read_in_transit(Files& files, const PrefixFolder& folder);

/// A complete plan, in the directory `pending` of this epoch.
struct PlanFound {
  const DatasetRecord& plan;
  const std::string& pending;
  std::uint64_t epoch;
};

/// Local. The dataset was dropped or deleted after the plan was made.
Result<bool> is_unwanted(Files& files, const PrefixFolder& folder, const PlanFound& found,
                         const Listing& deleted);

/// The datasets that are newer than this UUID: a plan must not replace their files.
Listing newer_than(const Listing& listing, const Uuid& uuid);

/// Collective. True if a file of the plan in `pending` has the name of one that was written later,
/// by one of the `newer` datasets or by another program; also if a damaged manifest makes this
/// unknown. Each manifest is read by one rank, and no rank has to know all names. Transient errors
/// are errors. Errors are agreed.
Result<bool> would_replace(Communicator& comm, Files& files, const PrefixFolder& folder,
                           const std::string& pending, const DatasetRecord& plan,
                           const Listing& newer);

}  // namespace cairn
