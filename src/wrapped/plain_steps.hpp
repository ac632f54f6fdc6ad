// Steps whose files are where the program means them to be, not in the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "files/files.hpp"

namespace cairn {

/// For each name of a checkpoint, the newest file in the prefix directory that has the same name
/// but for its step, if that is later. Only names count: a step of which each file is there, but
/// cut short, looks whole. Nor is a step found whose text is in a name twice (d1000/rest.1000.3).
struct LaterSteps {
  static constexpr std::int64_t none = -1;

  /// The smallest of the steps that were found for the names, as number_in() returns them; `none`
  /// if a name has no later file. The largest possible number if no name has a number.
  std::int64_t oldest = std::numeric_limits<std::int64_t>::max();
  std::string lacking;         ///< the name for which `oldest` was found
  std::int64_t newest = none;  ///< the largest of these steps
  std::string file;            ///< a file of the newest step
};

/// Local. Names are relative to the prefix directory; `find_step` returns the part of one that
/// stands for the step, or nothing. Lists each directory once. One that cannot be listed has no
/// files.
LaterSteps later_steps(Files& files, const std::string& prefix,
                       const std::vector<std::string>& names,
                       const std::function<std::string_view(std::string_view name)>& find_step);

/// Collective. That of the first rank whose `oldest` is that of all ranks.
std::string lacking_of_all(Communicator& comm, const LaterSteps& mine, std::int64_t oldest);

}  // namespace cairn
