#include "rbio/removal.hpp"

namespace cairn::rbio {

void remove_failed_attempts(SeriesDirectory& directory, const std::vector<FailedAttempt>& failed,
                            int writers, const Log& log) {
  for (const auto& [attempt, step] : failed) {
    const Status removed = directory.remove_incomplete(attempt, step, writers);
    if (!removed)
      log.warning("{}; what is left of step {} stays until the series is opened again",
                  removed.error().text, step);
  }
}

void remove_older_steps(SeriesDirectory& directory, std::size_t keep, const Log& log) {
  if (keep == 0) return;
  const Status removed = directory.remove_all_but(keep);
  if (!removed)
    log.warning("{}; older steps stay until the next step is published", removed.error().text);
}

}  // namespace cairn::rbio
