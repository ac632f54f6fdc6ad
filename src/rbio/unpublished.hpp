// What lies below `.rbio` of a series: steps that are being written, or that a dead run left.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "files/files.hpp"
#include "rbio/attempt.hpp"

namespace cairn::rbio {

/// A step that has no directory of its own yet, or no longer.
struct UnpublishedStep {
  enum class State {
    complete,    ///< all writers have finished: the next open publishes it
    unfinished,  ///< a run is writing it, or has died before the end
    removed,     ///< a newer one took its place; the next open deletes it
  };

  std::string path;
  State state = State::unfinished;
  std::uint64_t step = 0;
  Attempt attempt;  ///< of a removed one unknown
  std::uint64_t bytes = 0;
  std::uint32_t parts = 0;    ///< files that are there
  std::uint32_t done = 0;     ///< writers that have finished
  std::uint32_t writers = 0;  ///< of the step; 0: unknown, because no writer has finished
};

/// Reads only, and takes no lock: a run may publish or delete meanwhile, and what is gone by then
/// is left out. Empty if there is no `.rbio`.
Result<std::vector<UnpublishedStep>> find_unpublished(Files& files, const std::string& series);

}  // namespace cairn::rbio
