// What limits the speed of a copy that goes on without the program.
#pragma once

#include <cstdint>
#include <string>

#include "config/settings.hpp"

namespace cairn {

/// Of one rank. A copy of several ranks is limited by the greatest of theirs: a rank that keeps up
/// with its stated rate holds up no other.
enum class CopyLimit : std::int64_t {
  none,   ///< this rank copies nothing now
  rate,   ///< the stated one
  rests,  ///< a share of the time, or the hints of the program
  prefix_directory,
};

/// How a rank has copied data, from the beginning until now.
struct CopySpeed {
  std::int64_t us = 0;
  std::int64_t rested_us = 0;  ///< of that, while it stood back for the program
  std::uint64_t bytes = 0;
};

/// `bytes_per_s`: the stated rate of the rank; 0: there is none. `is_waited_for`: it does not rest
/// now, whatever it did before.
CopyLimit limit_of(const CopySpeed& speed, std::uint64_t bytes_per_s, bool is_waited_for);

/// For a line of the log. `bytes_per_s`: the stated rate of a node.
std::string text_of(CopyLimit limit, const Settings& settings, std::uint64_t bytes_per_s);

}  // namespace cairn
