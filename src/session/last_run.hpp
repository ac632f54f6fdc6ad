// What a run writes down of itself for the commands: where its ranks are, and its settings of
// places.
#pragma once

#include <string>

#include "comm/communicator.hpp"
#include "config/settings.hpp"
#include "records/last_run_record.hpp"
#include "topology/placement.hpp"

namespace cairn {

/// Collective. On rank 0 the record, but for what only the caller knows (bases, version, times);
/// on other ranks nothing. `placement` is that of `comm`; `host` is each rank's own.
LastRunRecord describe_run(Communicator& comm, const Placement& placement, const Settings& settings,
                           const std::string& host);

}  // namespace cairn
