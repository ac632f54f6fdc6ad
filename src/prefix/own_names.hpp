// Directories of the program's own files, below the prefix directory.
#pragma once

#include <set>
#include <string>

#include "files/files.hpp"
#include "prefix/prefix_folder.hpp"

namespace cairn {

/// Makes a directory below the prefix directory, with its missing parents, as the program would.
/// Fails if a parent is a link: Cairn writes nothing outside the prefix directory.
Status make_folder_below(Files& files, const std::string& prefix, const std::string& path);

/// The same for all directories of a rank's files.
Status make_folders(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// The directories that a rank's files are in.
std::set<std::string> folders_of(const PrefixFolder& folder, const RankRecord& record);

/// Those, and their parents up to the prefix directory. A directory comes after its parent.
std::set<std::string> folders_above(const PrefixFolder& folder, const RankRecord& record);

/// Those of folders_above() that are links, or are no directories. What is in them is not in the
/// prefix directory, so Cairn must not remove it.
Result<std::set<std::string>> folders_led_out(Files& files, const PrefixFolder& folder,
                                              const RankRecord& record);

/// Fails with corrupt if there are any: Cairn reads nothing through a link either.
Status refuse_led_out(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// Makes the names of a rank's files durable: syncs their directories, and the parents up to the
/// prefix directory.
Status sync_folders(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// Syncs the prefix directory, which may be a link, or a directory below it, which may not.
Status sync_folder_in(Files& files, const PrefixFolder& folder, const std::string& path);

}  // namespace cairn
