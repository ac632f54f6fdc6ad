// The names of what Cairn keeps in the prefix directory (docs/format/prefix.md).
#pragma once

#include <cstdint>
#include <string>

namespace cairn {

/// <prefix>/.cairn and what is in it; `prefix` is absolute and normalised.
struct PrefixFolder {
  std::string prefix;

  std::string root() const { return prefix + "/.cairn"; }
  /// When and why the job is to stop; `cairn halt` writes it, the library reads it.
  std::string halt() const { return root() + "/halt"; }
  /// Locked while the halt file is changed.
  std::string halt_lock() const { return root() + "/halt.lock"; }
};

}  // namespace cairn
