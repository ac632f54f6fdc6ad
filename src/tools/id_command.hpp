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
  std::string id;      ///< the id to record; empty: print the present one
  bool force = false;  ///< record it although the owner of the directory seems to be alive
  bool json = false;
};

/// Prints the id of the prefix directory, and its caches that are visible here; or records another
/// id, so that the next run uses the caches of that id. Returns the exit code: 0; 1 if the id
/// cannot be read or recorded.
int run_id_command(const IdCommand& command, Files& files, Clock& clock,
                   const ProcessFacts& process, std::ostream& out, const Log& log);

}  // namespace cairn
