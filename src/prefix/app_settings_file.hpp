// The settings that the program has made with SCR_Config, stored in the prefix directory for the
// commands.
#pragma once

#include <vector>

#include "prefix/prefix_folder.hpp"
#include "records/app_settings_record.hpp"

namespace cairn {

/// Replaces the settings of the last run, without those for one run only. Does not write if they
/// are equal; without entries there is no file.
Status keep_app_settings(Files& files, const PrefixFolder& folder, std::vector<Entry> entries);

/// None if there is no such file.
Result<std::vector<Entry>> read_app_settings(Files& files, const PrefixFolder& folder);

}  // namespace cairn
