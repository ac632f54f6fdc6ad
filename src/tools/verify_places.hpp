// The two places that cairn verify looks at.
#pragma once

#include "tools/verify_command.hpp"

namespace cairn {

/// The caches given, by what the scheme of each dataset holds.
Result<std::vector<Verified>> verify_caches(const VerifyCommand& command, Files& files,
                                            Clock& clock, const Log& log);

/// The prefix directory, by what caches still have of it.
Result<std::vector<Verified>> verify_prefix(const VerifyCommand& command, Files& files,
                                            Clock& clock, const Settings& settings, const Log& log);

}  // namespace cairn
