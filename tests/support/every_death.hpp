// Which of many deaths are tried.
#pragma once

#include <cstdlib>

namespace cairn {

/// Whether EVERY_DEATH=1 is in the environment, as in `make soak`: then a test that lets processes
/// die at one place after the other leaves none out.
inline bool tries_every_death() { return std::getenv("EVERY_DEATH") != nullptr; }

}  // namespace cairn
