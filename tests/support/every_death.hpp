// Which of many deaths are tried.
#pragma once

#include <cstdlib>

namespace cairn {

/// Whether EVERY_DEATH=1 is in the environment, as in `make soak`: then a test that lets processes
/// die at one place after the other leaves none out.
inline bool tries_every_death() { return std::getenv("EVERY_DEATH") != nullptr; }

/// Of deaths around changes to files: an odd number, as they are before and after a change in turn.
inline int steps_between_deaths() { return tries_every_death() ? 1 : 3; }

}  // namespace cairn
