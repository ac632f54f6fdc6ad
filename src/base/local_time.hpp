// Local times as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace cairn {

/// The end of the year 9999 (UTC) in seconds since 1970: later times have no text of this form.
inline constexpr std::int64_t latest_time_s = 253'402'300'799;

/// "2026-12-24T18:00:00" in local time, from 1970 on -> seconds since 1970. A time that occurs
/// twice when the clocks go back is the first or the second, as the C library chooses. A time that
/// does not exist, and any other text, is a bad_argument.
Result<std::int64_t> parse_local_time(std::string_view text);

/// The inverse.
std::string format_local_time(std::int64_t time_s);

}  // namespace cairn
