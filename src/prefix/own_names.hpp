// Folders of the program's own files, below the prefix directory.
#pragma once

#include <set>
#include <string>

#include "files/files.hpp"
#include "prefix/prefix_folder.hpp"

namespace cairn {

/// Makes a folder below the prefix directory and the missing ones above it, as the program would. A
/// link on the way is refused: nobody may lead what is written out of the prefix directory.
Status make_folder_below(Files& files, const std::string& prefix, const std::string& path);

/// The same for all folders of a rank's files.
Status make_folders(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// Those that the files of a rank are in.
std::set<std::string> folders_of(const PrefixFolder& folder, const RankRecord& record);

/// Those, and all above them up to the prefix directory. A folder comes after what it is in.
std::set<std::string> folders_above(const PrefixFolder& folder, const RankRecord& record);

/// Of folders_above(): those to which a link leads, or what else is no folder. What is in them is
/// not in the prefix directory, and not Cairn's to remove.
Result<std::set<std::string>> folders_led_out(Files& files, const PrefixFolder& folder,
                                              const RankRecord& record);

/// corrupt if there are any: nothing is read through a link either.
Status refuse_led_out(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// Makes the names of a rank's files durable: in their folders, and those up to the prefix
/// directory.
Status sync_folders(Files& files, const PrefixFolder& folder, const RankRecord& record);

/// Syncs a folder that is, or lies below, the prefix directory. That one alone may be a link.
Status sync_folder_in(Files& files, const PrefixFolder& folder, const std::string& path);

}  // namespace cairn
