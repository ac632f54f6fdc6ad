// The part of cairn index that takes over what Cairn has not written: files that are there, and the
// datasets of SCR 3.
#pragma once

#include "prefix/found_files.hpp"
#include "tools/index_changes.hpp"

namespace cairn {

using NamesOfRanks = std::vector<std::vector<std::string>>;

/// The files of each rank that `command` names, relative to the prefix directory. bad_argument
/// where it makes no sense.
Result<NamesOfRanks> names_of_ranks(const IndexCommand& command, Files& files,
                                    const PrefixFolder& folder);

/// Whether add_files() may do it, before anything is changed: the name is free, the files are
/// there.
Status look_at_files(const IndexCommand& command, Files& files, const PrefixFolder& folder);

/// Collective, of one process. The files are a checkpoint from here on, the newest.
Status add_files(const IndexCommand& command, Communicator& alone, const Site& site,
                 const Settings& settings, Report& report);

/// Collective, of one process. Takes over all whole datasets of SCR 3 that are not known yet, and
/// which of them is current. Those that cannot be taken over are `refused`, and are no error.
Status import_from_scr(Communicator& alone, const Site& site, const Settings& settings,
                       const Log& log, Report& report);

/// That SCR left datasets which the index does not have, and what imports them; empty if it left
/// none.
std::string note_of_scr(Files& files, const PrefixFolder& folder);

}  // namespace cairn
