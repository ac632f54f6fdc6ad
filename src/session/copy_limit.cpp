#include "session/copy_limit.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.hpp"

namespace cairn {

CopyLimit limit_of(const CopySpeed& speed, std::uint64_t bytes_per_s, bool is_waited_for) {
  if (!is_waited_for && 2 * speed.rested_us > speed.us) return CopyLimit::rests;
  constexpr double nearly = 0.8;  // waits are never exact, and a file takes time to open and close
  const auto works_s = static_cast<double>(speed.us - speed.rested_us) * 1e-6;
  const double bytes_at_rate = static_cast<double>(bytes_per_s) * works_s;
  const bool has_rate =
      bytes_per_s > 0 && static_cast<double>(speed.bytes) >= nearly * bytes_at_rate;
  return has_rate ? CopyLimit::rate : CopyLimit::prefix_directory;
}

std::string text_of(CopyLimit limit, const Settings& settings, std::uint64_t bytes_per_s) {
  if (limit == CopyLimit::rate)
    return fmt::format(
        "{} ({}/s for each node)",
        settings.async_bytes_per_s > 0 ? "SCR_FLUSH_ASYNC_BW" : "CAIRN_FLUSH_BANDWIDTH",
        format_bytes(bytes_per_s));
  if (limit != CopyLimit::rests) return "the prefix directory";
  const double percent = settings.async_percent;
  // A greater share leaves no time to rest for so long.
  if (percent > 0 && percent <= 50) return fmt::format("SCR_FLUSH_ASYNC_PERCENT ({} %)", percent);
  return "Cairn_Computing_end (the program communicates)";
}

}  // namespace cairn
