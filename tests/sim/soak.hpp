// Many seeds, in processes of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cairn::sim {

/// Simulates all `seeds` in `jobs` processes; one that crashes or hangs is a failure of the seed it
/// was at. Stops at the first failure. Returns the exit code; `program` is named in the command
/// that replays a failure.
int soak(const std::vector<std::uint64_t>& seeds, int jobs, const std::string& program);

}  // namespace cairn::sim
