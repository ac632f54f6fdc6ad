// The two places that cairn verify checks.
#pragma once

#include "tools/verify/verify_command.hpp"

namespace cairn {

/// The given caches, repaired with the redundancy of each dataset.
Result<std::vector<Verified>> verify_caches(const VerifyCommand& command, Files& files,
                                            Clock& clock, const Log& log);

/// The prefix directory, repaired from the caches.
Result<std::vector<Verified>> verify_prefix(const VerifyCommand& command, Files& files,
                                            Clock& clock, const Settings& settings, const Log& log);

}  // namespace cairn
