// What a mount has done, for people and for programs.
#pragma once

#include <string>

#include "aggregate/aggregator.hpp"

namespace cairn {

/// {"writes_in", "bytes_in", "writes_out", "bytes_out", "merge_factor", "waits", "errors",
/// "pool_used_bytes", "pool_most_bytes"}, with a newline.
std::string json_of(const AggregateStatistics& statistics);
/// The same in sentences.
std::string text_of(const AggregateStatistics& statistics);

}  // namespace cairn
