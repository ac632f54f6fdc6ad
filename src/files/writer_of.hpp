// Which process has a file open for writing: docs/adr/0026-an-open-file-is-found-by-a-lease.md
#pragma once

#include <string>

#include "files/descriptor.hpp"

namespace cairn {

/// `reader` must be open for reading only.
Result<Writer> writer_of(const OpenFile& reader, const std::string& path);

}  // namespace cairn
