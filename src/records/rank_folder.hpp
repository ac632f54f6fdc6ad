// The names of one rank's part of a dataset in a cache (docs/format/cache.md).
#pragma once

#include <cstdint>
#include <string>

namespace cairn {

/// dataset.<number>.<uuid>/rank.<r>/{record, record.new, parity.<generation>, elsewhere,
/// files/<name>}
struct RankFolder {
  std::string path;

  std::string files() const { return path + "/files"; }
  std::string file(const std::string& name) const { return files() + "/" + name; }
  std::string parity(std::uint64_t generation) const {
    return path + "/parity." + std::to_string(generation);
  }
  std::string record() const { return path + "/record"; }
  /// Written and synced before the ranks agree; a commit renames it to record().
  std::string prepared() const { return path + "/record.new"; }
  /// Empty. Some part of the dataset has been moved, or made anew: a node that is away may have it
  /// too.
  std::string elsewhere() const { return path + "/elsewhere"; }
};

}  // namespace cairn
