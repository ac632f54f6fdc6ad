// What the program has set by SCR_Config, kept in the prefix directory for the commands, which are
// not the program.
#pragma once

#include <vector>

#include "prefix/prefix_folder.hpp"
#include "records/app_settings_record.hpp"

namespace cairn {

/// In the place of what the last run of the program has set, but for what holds for one run only.
/// Changes nothing where that was the same; no entries leave no file.
Status keep_app_settings(Files& files, const PrefixFolder& folder, std::vector<Entry> entries);

/// None if there is no such file.
Result<std::vector<Entry>> read_app_settings(Files& files, const PrefixFolder& folder);

}  // namespace cairn
