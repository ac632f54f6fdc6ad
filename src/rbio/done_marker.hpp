// What a writer leaves beside a part when its bytes are durable (docs/format/rbio-part.md).
#pragma once

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace cairn::rbio {

struct DoneMarker {
  std::uint32_t writers = 1;  ///< of the step; with as many markers it is whole

  bool operator==(const DoneMarker&) const = default;
};

Blob encode(const DoneMarker& marker);
/// corrupt or newer_format; the text does not name the file.
Result<DoneMarker> decode_done_marker(Bytes content);

}  // namespace cairn::rbio
