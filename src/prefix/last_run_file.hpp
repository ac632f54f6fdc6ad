// What the last run wrote down of itself in the prefix directory, by which the commands find its
// job. No run reads it.
#pragma once

#include <optional>

#include "files/clock.hpp"
#include "prefix/prefix_folder.hpp"
#include "records/last_run_record.hpp"

namespace cairn {

/// Replaces what the run before wrote.
Status keep_last_run(Files& files, Clock& clock, const PrefixFolder& folder,
                     const LastRunRecord& record);

/// Nothing if there is no such file.
Result<std::optional<LastRunRecord>> read_last_run(Files& files, const PrefixFolder& folder);

/// Writes down that this run has ended now, unless another run has begun since.
Status mark_last_run_ended(Files& files, Clock& clock, const PrefixFolder& folder,
                           const LastRunRecord& mine);

enum class RunState {
  runs,
  ended,    ///< SCR_Finalize was done
  died,     ///< its rank 0 is gone without that
  unknown,  ///< it is of another machine, and no sign of life is seen
};

/// Local. By the process, if it is one of this machine, else by the signs of life that an owner of
/// the prefix directory gives.
RunState state_of_run(Files& files, Clock& clock, const PrefixFolder& folder,
                      const LastRunRecord& record);

std::string_view name_of(RunState state);

}  // namespace cairn
