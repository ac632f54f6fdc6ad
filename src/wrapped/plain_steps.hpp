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

  /// As number_in(): of the name that has the least of them; `none` if it has none. The largest
  /// number if there are no names with numbers.
  std::int64_t oldest = std::numeric_limits<std::int64_t>::max();
  std::string lacking;         ///< that name of the checkpoint
  std::int64_t newest = none;  ///< of all names
  std::string file;            ///< of the newest step
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
