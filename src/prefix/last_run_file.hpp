// The record of the last run in the prefix directory, with which the commands find its job. No run
// reads it.
#pragma once

#include <optional>

#include "files/clock.hpp"
#include "prefix/prefix_folder.hpp"
#include "records/last_run_record.hpp"

namespace cairn {

/// Replaces the record of the previous run.
Status keep_last_run(Files& files, Clock& clock, const PrefixFolder& folder,
                     const LastRunRecord& record);

/// Nothing if there is no such file.
Result<std::optional<LastRunRecord>> read_last_run(Files& files, const PrefixFolder& folder);

/// Records that this run has ended now, unless another run has begun since.
Status mark_last_run_ended(Files& files, Clock& clock, const PrefixFolder& folder,
                           const LastRunRecord& mine);

enum class RunState {
  runs,
  ended,    ///< SCR_Finalize has ended
  died,     ///< its rank 0 has ended without that
  unknown,  ///< it is on another machine, and no sign of life is visible
};

/// Local. Checks the process if it is on this machine, else the signs of life of the owner of the
/// prefix directory.
RunState state_of_run(Files& files, Clock& clock, const PrefixFolder& folder,
                      const LastRunRecord& record);

std::string_view name_of(RunState state);

}  // namespace cairn
