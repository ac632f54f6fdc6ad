// What a writer removes: files of steps that have failed, and old steps. A failure of that fails no
// step: the log says what stays.
#pragma once

#include <cstdint>
#include <vector>

#include "base/log.hpp"
#include "rbio/series_directory.hpp"

namespace cairn::rbio {

struct FailedAttempt {
  Attempt attempt;
  std::uint64_t step = 0;
};

/// Before a step is written, as it may need their space.
void remove_failed_attempts(SeriesDirectory& directory, const std::vector<FailedAttempt>& failed,
                            int writers, const Log& log);

/// After one is published. `keep` 0 keeps all.
void remove_older_steps(SeriesDirectory& directory, std::size_t keep, const Log& log);

}  // namespace cairn::rbio
