// What was to be copied to the prefix directory, and is lost in the caches.
#pragma once

#include "comm/communicator.hpp"
#include "recovery/cached_dataset.hpp"

namespace cairn {

struct ThisRun;

/// Both errors as one, with the code of the first.
Status joined(Status first, const Status& second);

/// Whichever call finds it, the next Complete returns it, or Finalize where there is none. The same
/// on all ranks; local.
class Losses {
 public:
  /// Of a dataset that is not usable any more.
  void note(const CachedDataset& dataset, const std::string& prefix);
  /// What a Complete or Finalize returns: these go before its own `status`.
  Status before(const Status& status);

 private:
  Status untold_;
};

/// Collective. As check_and_heal(), of a dataset that is due in the prefix directory. An error is
/// noted.
Status heal_due(Communicator& comm, ThisRun& run, CachedDataset& dataset);

}  // namespace cairn
