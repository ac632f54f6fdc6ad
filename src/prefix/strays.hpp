// Staged files whose places are in no readable record.
#pragma once

#include "files/files.hpp"
#include "prefix/prefix_folder.hpp"

namespace cairn {

/// Local. Removes the staged files of a dataset from all directories below the prefix directory,
/// and follows no links. `pending`: the folder of the dataset, whose name has its UUID; it is
/// removed last. Returns the number of files.
Result<std::uint64_t> remove_strays(Files& files, const PrefixFolder& folder,
                                    const std::string& pending);

}  // namespace cairn
