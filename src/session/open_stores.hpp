// Taking hold of the job's storage at the beginning of a run.
#pragma once

#include <memory>
#include <vector>

#include "cache/store.hpp"
#include "comm/communicator.hpp"
#include "files/clock.hpp"
#include "topology/placement.hpp"

namespace cairn {

struct OpenStores {
  std::vector<Store> stores;
  std::vector<std::unique_ptr<FileLock>> locks;  ///< on the ranks that take them
};

/// Collective. Opens the enabled stores, and locks the job: on every node, in the control
/// directory, and in every shared store. Two runs of one job at once would take each other's
/// datasets for remains.
///
/// Errors (agreed): untrusted, io; busy if another run of the job is alive, after ten seconds,
/// because a killed run may take a moment to be gone; bad_setting if a store that is said to be
/// private to each group is seen by two of them, whose ranks would remove each other's files.
Result<OpenStores> open_stores(Communicator& comm, Files& files, Clock& clock,
                               const Placement& placement, const Settings& settings);

}  // namespace cairn
