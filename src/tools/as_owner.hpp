// What a command does as the owner of the prefix directory.
#pragma once

#include <functional>
#include <string_view>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "prefix/site.hpp"

namespace cairn {

/// By which many records are read.
inline constexpr int reading_threads = 4;
/// By which all bytes of a dataset are read.
inline constexpr int checking_threads = 2;

/// What --help says of --force, which sets CommandOwner::force.
inline constexpr const char* force_help =
    "Do not wait 20 s for a sign of life of the job that owns the prefix directory; use this only "
    "if that job is dead";

struct CommandOwner {
  std::string_view name;    ///< "cairn index", for whoever asks who has the directory
  bool force = false;       ///< whoever had it is dead for certain
  bool reads_anew = false;  ///< all records, whatever the listing says
  bool run_ended = false;  ///< if it was a run of the job of the settings, that is dead for certain
};

/// Waits until it is certain that no other job owns the prefix directory of `settings`, and logs
/// that it waits. busy if one gives a sign of life. Returns at once if the last owner recorded its
/// end.
Status wait_for_owner(const CommandOwner& owner, Files& files, Clock& clock,
                      const Settings& settings, const Log& log);

/// Takes the prefix directory of `settings` over, does `action` (with a communicator of one rank),
/// lists what it changed, and gives the directory back. Tells `log` before it waits for a sign of
/// life of another owner. Errors: busy, with what to do, where
/// another owner lives; those of `action`; those of the files.
Status as_owner(const CommandOwner& owner, Files& files, Clock& clock, const Settings& settings,
                const Log& log, const std::function<Status(Communicator&, const Site&)>& action);

}  // namespace cairn
