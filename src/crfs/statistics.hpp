// Statistics of a mount, as text and as JSON.
#pragma once

#include <string>

#include "crfs/mount_options.hpp"

namespace cairn {

struct MountStatistics {
  Mode mode = Mode::direct;  ///< the mode in use, never automatic
  AggregateStatistics gathered;
  std::uint64_t passed_through = 0;  ///< files that were opened for the kernel to read and write
};

/// {"writes_in", "bytes_in", "writes_out", "bytes_out", "merge_factor", "waits", "errors",
/// "pool_used_bytes", "pool_most_bytes", "passed_through", "mode"}, with a newline.
std::string json_of(const MountStatistics& statistics);
/// The same as text.
std::string text_of(const MountStatistics& statistics);

}  // namespace cairn
