// The output of cairn index as text.
#pragma once

#include <string>

#include "prefix/keeper.hpp"

namespace cairn {

/// Newest first as they come, with a star at `starred`, which may be null. Not wider than `columns`
/// unless numbers are: long names lose their beginning, reasons of failures their end.
std::string dataset_table(const Listing& listing, const DatasetRecord* starred,
                          std::size_t columns = 80, bool has_colour = false);

/// All facts about one dataset, a line each.
std::string dataset_text(const DatasetRecord& record, bool is_current, bool is_dropped);

}  // namespace cairn
