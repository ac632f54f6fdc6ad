// Directories of the program's own files, below the prefix directory.
#pragma once

#include <set>
#include <string>

#include "files/files.hpp"
#include "prefix/prefix_folder.hpp"

namespace cairn {

/// Makes a directory below the prefix directory, and its missing parents, as the program would.
/// Fails if a component is a link, so that no user can redirect files out of the prefix directory.
Status make_folder_below(Files& files, const std::string& prefix, const std::string& path);

/// The same for all directories of a rank's files.
Status make_folders(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// The directories of a rank's files.
std::set<std::string> folders_of(const PrefixFolder& folder, const RankRecord& record);

/// These, and their parents up to the prefix directory. A directory comes after its parent.
std::set<std::string> folders_above(const PrefixFolder& folder, const RankRecord& record);

/// Those of folders_above() that are links or otherwise no directories. Their content is not in the
/// prefix directory, and Cairn must not remove it.
Result<std::set<std::string>> folders_led_out(Files& files, const PrefixFolder& folder,
                                              const RankRecord& record);

/// corrupt if there are any, as nothing is read through a link.
Status refuse_led_out(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// Makes the names of a rank's files durable: syncs their directories, and the parents up to the
/// prefix directory.
Status sync_folders(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// Syncs the prefix directory or one below it. Only the prefix directory itself may be a link.
Status sync_folder_in(Files& files, const PrefixFolder& folder, const std::string& path);

}  // namespace cairn
