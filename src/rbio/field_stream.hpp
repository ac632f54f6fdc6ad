// A whole field of a step, over all ranks that wrote, block by block.
#pragma once

#include <functional>
#include <string>

#include "rbio/restore.hpp"

namespace cairn::rbio {

/// Calls `sink` with the bytes of the field in rank order; every byte has matched its checksum.
/// Stops at the first error, of reading or of the sink. Needs one block of memory.
Status stream_field(Files& files, const std::string& step_path, const StepIndex& index,
                    std::size_t field, const std::function<Status(Bytes)>& sink);

}  // namespace cairn::rbio
