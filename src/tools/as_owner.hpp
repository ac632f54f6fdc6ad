// Runs actions of a command as the owner of the prefix directory.
#pragma once

#include <functional>
#include <string_view>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "prefix/site.hpp"

namespace cairn {

/// The I/O threads for reading many records.
inline constexpr int reading_threads = 4;
/// The I/O threads for reading all bytes of a dataset.
inline constexpr int checking_threads = 2;

/// The help of --force, which sets CommandOwner::force.
inline constexpr const char* force_help =
    "Do not wait 20 s for a sign of life of the job that owns the prefix directory; use this only "
    "if that job is dead";

struct CommandOwner {
  std::string_view name;    ///< "cairn index", shown as the owner of the directory
  bool force = false;       ///< the previous owner is certainly dead
  bool reads_anew = false;  ///< reads all records, and ignores the listing
  bool run_ended = false;   ///< if the previous owner was a run of this job, it is certainly dead
};

/// Waits until it is certain that no other job owns the prefix directory of `settings`, and logs
/// that it waits. busy if one gives a sign of life. Returns at once if the last owner recorded its
/// end.
Status wait_for_owner(const CommandOwner& owner, Files& files, Clock& clock,
                      const Settings& settings, const Log& log);

/// Becomes the owner of the prefix directory of `settings`, runs `action` (with a communicator of
/// one rank), updates the listing, and ends its ownership. Logs before it waits for a sign of life
/// of another owner. Errors: busy, with a remedy, if another owner is alive; those of `action`;
/// those of the files.
Status as_owner(const CommandOwner& owner, Files& files, Clock& clock, const Settings& settings,
                const Log& log, const std::function<Status(Communicator&, const Site&)>& action);

}  // namespace cairn
