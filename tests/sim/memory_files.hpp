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
/// Reads and writes go through the loops of production (files/uninterrupted.hpp): of so many bytes
/// that are wanted, a call moves as many as `moved` says, and is interrupted where that is 0.
using Moved = std::function<std::size_t(std::size_t wanted)>;
std::unique_ptr<Files> make_memory_files(
    Mounts mounts, std::function<std::int64_t()> now_ns,
    Moved moved = [](std::size_t wanted) { return wanted; });

}  // namespace cairn::sim
