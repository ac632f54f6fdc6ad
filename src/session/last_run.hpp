// What a run writes down of itself for the commands: where its ranks are, and its settings of
// places.
#pragma once

#include <string>

#include "base/log.hpp"
#include "comm/communicator.hpp"
#include "config/resolve.hpp"
#include "files/clock.hpp"
#include "files/files.hpp"
#include "records/last_run_record.hpp"
#include "topology/placement.hpp"

namespace cairn {

/// Collective. On rank 0 the record, but for what only the caller knows (bases, version, times);
/// on other ranks nothing. `placement` is that of `comm`; `host` is each rank's own.
LastRunRecord describe_run(Communicator& comm, const Placement& placement, const Settings& settings,
                           const std::string& host);

/// The record of a run in its prefix directory, by which the commands find the job.
class AnnouncedRun {
 public:
  /// Collective. Once the session is there: a run that was refused says nothing of the job that
  /// lives. What goes wrong is only logged.
  void begin(Communicator& comm, Files& files, Clock& clock, const Log& log,
             const Placement& placement, const ResolvedSettings& resolved);
  /// Local, on rank 0. The run has ended well.
  void end(Files& files, Clock& clock, const Log& log) const;

 private:
  LastRunRecord run_;
};

}  // namespace cairn
