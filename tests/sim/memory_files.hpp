// The file seam over Volumes: what one process of a node sees.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "files/files.hpp"
#include "files/uninterrupted.hpp"
#include "volume.hpp"

namespace cairn::sim {

/// Volumes by the folder they are mounted on ("/mem").
using Mounts = std::map<std::string, std::shared_ptr<Volume>>;

/// An ordinary user's process with umask 022. Differs from a real one only in that nothing is a
/// link, and in that a view hands out copies where a mapping would show later changes; so what is
/// read stays readable as long as the view is there, and address sanitizer finds what outlives it.
/// `now_ns` gives times to files. No faults and no waiting: wrap it for those.
///
/// Every call that production makes again when a signal interrupts it goes through the same loops
/// here (files/uninterrupted.hpp).
struct Disturbances {
  /// Of so many bytes that are wanted, a read or write moves so many, and is interrupted where that
  /// is 0.
  std::function<std::size_t(std::size_t wanted)> moved = [](std::size_t wanted) { return wanted; };
  /// Any other call that can be interrupted is, before it has done anything.
  std::function<bool()> interrupted = [] { return false; };
  /// Told of what a volume without room refuses.
  std::function<void(const std::string& path)> refused_room = [](const std::string&) {};
};
std::unique_ptr<Files> make_memory_files(Mounts mounts, std::function<std::int64_t()> now_ns,
                                         Disturbances disturbances = {});

}  // namespace cairn::sim
