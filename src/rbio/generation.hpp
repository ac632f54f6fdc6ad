// How often a series was opened for writing, as `.rbio/generation` has it
// (docs/format/rbio-part.md).
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace cairn::rbio {

Blob encode_generation(std::uint64_t generation);
/// corrupt or newer_format; the text does not name the file.
Result<std::uint64_t> decode_generation(Bytes content);

}  // namespace cairn::rbio
