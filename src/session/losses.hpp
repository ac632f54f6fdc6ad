// What was to be copied to the prefix directory, and is lost in the caches.
#pragma once

#include <vector>

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
  void note(const CachedDataset& dataset, const std::string& prefix);
  /// It is in the prefix directory after all: that could not be known when it was noted.
  void forget(const Uuid& dataset);
  /// What a Complete or Finalize returns: these go before its own `status`.
  Status before(const Status& status);

 private:
  struct Loss {
    Uuid dataset;
    Status told;
  };
  std::vector<Loss> untold_;
};

/// Collective. As check_and_heal(), of a dataset that is due in the prefix directory. Its error is
/// `lost`, and is noted.
Status heal_due(Communicator& comm, ThisRun& run, CachedDataset& dataset);

}  // namespace cairn
