// Many seeds, in processes of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulation.hpp"

namespace cairn::sim {

/// What a seed stands for: simulate() or one of prefix_job.hpp.
using Simulate = Outcome (*)(std::uint64_t seed, bool print);

/// Simulates all `seeds` in `jobs` processes; one that crashes or hangs is a failure of the seed it
/// was at. Stops at the first failure. Returns the exit code; `program` is named in the command
/// that replays a failure.
int soak(Simulate simulate, const std::vector<std::uint64_t>& seeds, int jobs,
         const std::string& program);

}  // namespace cairn::sim
