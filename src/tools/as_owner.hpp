// Lets a command own the prefix directory while it works.
#pragma once

#include <functional>
#include <string_view>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "prefix/site.hpp"

namespace cairn {

/// Threads that read many records.
inline constexpr int reading_threads = 4;
/// Threads that read all bytes of a dataset.
inline constexpr int checking_threads = 2;

/// The help of --force, which sets CommandOwner::force.
inline constexpr const char* force_help =
    "Do not wait 20 s for a sign of life of the job that owns the prefix directory; use this only "
    "if that job is dead";

struct CommandOwner {
  std::string_view name;    ///< "cairn index"; other jobs' messages name it as the owner
  bool force = false;       ///< the user says that the last owner is dead
  bool reads_anew = false;  ///< reads all records instead of the listing
  bool run_ended = false;   ///< a run of the job of the settings, if it was the owner, is dead
};

/// Waits until it is certain that no other job owns the prefix directory of `settings`, and logs
/// that it waits. busy if one gives a sign of life. Returns at once if the last owner recorded its
/// end.
Status wait_for_owner(const CommandOwner& owner, Files& files, Clock& clock,
                      const Settings& settings, const Log& log);

/// Takes over the prefix directory of `settings`, does `action` (with a communicator of one rank),
/// saves the listing, and gives the directory back. Logs a message before it waits for a sign of
/// life of another owner. Errors: busy, with what to do, if another owner lives; those of `action`;
/// those of the files.
Status as_owner(const CommandOwner& owner, Files& files, Clock& clock, const Settings& settings,
                const Log& log, const std::function<Status(Communicator&, const Site&)>& action);

}  // namespace cairn
