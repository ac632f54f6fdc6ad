// Checkpoints whose files have no names yet when an older one becomes the current one.
#pragma once

#include "prefix/site.hpp"

namespace cairn {

/// Local. Makes `chosen` the current checkpoint. Newer ones that are not settled are marked first:
/// a process that settles them later does not make them current again.
Status choose_current(const Site& site, Keeper& keeper, const DatasetInfo& chosen);

/// Local. Such a mark is in the folder of the dataset.
bool is_passed_over(Files& files, const std::string& dataset_folder);

}  // namespace cairn
