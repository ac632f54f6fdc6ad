// The part of cairn index for data that Cairn has not written: existing files, and the datasets of
// SCR 3.
#pragma once

#include "prefix/found_files.hpp"
#include "tools/index/index_command.hpp"

namespace cairn {

using NamesOfRanks = std::vector<std::vector<std::string>>;

/// The files of each rank in `command`, relative to the prefix directory. bad_argument if the
/// command is wrong.
Result<NamesOfRanks> names_of_ranks(const IndexCommand& command, Files& files,
                                    const PrefixFolder& folder);

/// Checks before any change whether add_found() is possible: the name is free, and the files exist.
Status look_at_files(const IndexCommand& command, Files& files, const PrefixFolder& folder);

/// A note that SCR has left datasets which the index does not have, with the command that imports
/// them; empty if there are none.
std::string note_of_scr(Files& files, const PrefixFolder& folder);

}  // namespace cairn
