// What was to be copied to the prefix directory, and is lost in the caches or cannot be repaired
// now.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "prefix/event_log.hpp"
#include "recovery/cached_dataset.hpp"

namespace cairn {

class PrefixSide;
struct ThisRun;

/// Both errors as one, with the code of the first; but no other code hides `lost`.
Status joined(Status first, const Status& second);

/// Whichever call finds it, the next Complete returns it, or Finalize where there is none. The same
/// on all ranks; local.
class Losses {
 public:
  /// `events` must outlive this.
  explicit Losses(EventLog& events) : events_(events) {}

  /// Of a dataset that is not usable any more. What is lost is logged too.
  void note(const CachedDataset& dataset, const std::string& prefix);
  /// What a Complete or Finalize returns: these go before its own `status`.
  Status before(const Status& status);

 private:
  EventLog& events_;
  std::vector<Status> unreported_;
};

/// "dataset 5 (ckpt.5) was not copied to ..., because it cannot be repaired now: ...", and what
/// becomes of it.
std::string not_copied(const CachedDataset& dataset, const std::string& prefix);

/// `lost` is `not_copied` where another try or node may bring the dataset back.
Status as_not_copied(Status healed, const CachedDataset& dataset);

/// Collective. As check_and_heal(), of a dataset whose copy has found damage. An error is noted,
/// and is as as_not_copied() says.
Status heal_due(Communicator& comm, ThisRun& run, CachedDataset& dataset);

// Collective, while no copy is under way:

/// Notes a dataset that is not usable, but for what is lost and superseded in the prefix directory:
/// that is not missed.
void note_unless_superseded(Communicator& comm, ThisRun& run, PrefixSide& prefix,
                            const CachedDataset& dataset);
/// As heal_due(); errors are noted by note_unless_superseded().
Status heal_for_copy(Communicator& comm, ThisRun& run, PrefixSide& prefix, CachedDataset& dataset);

}  // namespace cairn
