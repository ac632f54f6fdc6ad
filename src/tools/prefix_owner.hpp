// How a command comes to own the prefix directory while it changes it.
#pragma once

#include <functional>

#include "config/settings.hpp"
#include "prefix/site.hpp"

namespace cairn {

/// By which many records are read.
inline constexpr int reading_threads = 4;
/// By which all bytes of a dataset are read.
inline constexpr int checking_threads = 2;

/// Does `action` alone, as the owner, giving signs of life; `name` is that of the command. What has
/// changed is listed then, and the next job need not wait, whatever has come of it. Errors: busy
/// where another owner lives, those of the files, and that of `action`.
Status as_owner(Files& files, Clock& clock, const Settings& settings, const std::string& name,
                Claim claim, const std::function<Status(Communicator&, Site&)>& action);

}  // namespace cairn
