// What the user can do about an error, where that depends on which storage it is about.
#pragma once

#include <string>

#include "base/error.hpp"
#include "config/settings.hpp"

namespace cairn {

/// The text of the error, and behind it what to do, for the prefix directory or for the caches: by
/// where the file lies that the text says something cannot be done to, or `unknown` if it names
/// none. For the caches it names the setting that has chosen the place, and where that was set.
std::string with_remedy(const Error& error, const Settings& settings,
                        Storage unknown = Storage::cache);

}  // namespace cairn
