// cairn index id
#pragma once

#include <ostream>
#include <string>

#include "files/clock.hpp"
#include "files/files.hpp"
#include "tools/job_settings.hpp"

namespace cairn {

struct IdCommand {
  JobSettingsSource source;
  std::string id;      ///< to be recorded; empty: print the one that is
  bool force = false;  ///< record it although the directory's owner seems to live
  bool json = false;
};

/// Prints the id by which caches know the prefix directory, and its caches that are seen here; or
/// gives it another one, so that the next run goes on with the caches of that id. Returns the exit
/// code: 0; 1 if the id cannot be read or recorded.
int run_id_command(const IdCommand& command, Files& files, Clock& clock,
                   const ProcessFacts& process, std::ostream& out, const Log& log);

}  // namespace cairn
