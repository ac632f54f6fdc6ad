// Finishes, on one node, the copies to the prefix directory that a dead run had begun.
#pragma once

#include <functional>
#include <vector>

#include "prefix/unfinished.hpp"
#include "scavenge/scavenge.hpp"

namespace cairn {

/// What a drain has reached for a dataset.
struct DrainedDataset {
  enum class Outcome {
    published,   ///< all of it is in the prefix directory
    incomplete,  ///< all parts that this node holds are copied; others are not yet
    failed,      ///< a part that this node holds could not be copied
  };
  DatasetInfo dataset;
  std::vector<int> ranks;    ///< whose parts this node holds
  std::vector<int> missing;  ///< incomplete: whose parts are not copied yet
  Outcome outcome = Outcome::failed;
  Status failure;  ///< failed: busy if a later run owns the prefix directory now
};

/// Local. The unfinished copies that any process may carry on: no later owner has taken over. In
/// the order in which they are to be finished. Not among them are datasets that were dropped or
/// deleted since, and those whose files have the names of newer ones. What cannot be read now is an
/// error: otherwise an unfinished copy could count as none.
Result<std::vector<UnfinishedFlush>> plans_to_drain(Files& files, const PrefixFolder& folder);

struct DrainOptions {
  ScavengeLimits limits;
  bool copy_metadata = true;  ///< SCR_COPY_METADATA
};

/// Local. Of each plan, copies the parts that this node `held` when the run died, each block
/// checked on the way, and publishes the dataset when all parts are there, whichever node has
/// copied them. It works with the rights of the dead run, without those of an owner; the next owner
/// gives the files their names. Several processes may copy the same part at the same time, because
/// they write the same bytes. `progress` is called after each part. What was copied stays, also
/// after an error, and the next drain, rebuild or run continues from there. Errors: busy when the
/// time is up; those of reading the prefix directory. Errors of a dataset are in its result.
Result<std::vector<DrainedDataset>> drain(Files& files, Clock& clock, const PrefixFolder& folder,
                                          const std::vector<Remains>& held,
                                          const DrainOptions& options,
                                          const std::function<void(ScavengeProgress)>& progress);

}  // namespace cairn
