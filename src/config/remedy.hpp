// What the user can do about an error, as far as that depends on the storage.
#pragma once

#include <string>

#include "base/error.hpp"
#include "config/settings.hpp"

namespace cairn {

/// The text of the error, followed by a remedy for the prefix directory or for the caches. The path
/// in the text decides which; without a path it is `unknown`. For the caches the remedy names the
/// setting of the place, and where that was set.
std::string with_remedy(const Error& error, const Settings& settings,
                        Storage unknown = Storage::cache);

}  // namespace cairn
