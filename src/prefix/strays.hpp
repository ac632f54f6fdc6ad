// Staged files of which no record tells any more where they are.
#pragma once

#include "files/files.hpp"
#include "prefix/prefix_folder.hpp"

namespace cairn {

/// Local. Removes what was staged for a dataset, wherever it is: looks into every folder below the
/// prefix directory, and follows no links. `pending`: the folder of the dataset, whose name tells
/// its UUID; it goes last. How many files there were.
Result<std::uint64_t> remove_strays(Files& files, const PrefixFolder& folder,
                                    const std::string& pending);

}  // namespace cairn
