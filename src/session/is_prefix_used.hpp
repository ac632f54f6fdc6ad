// Whether a prefix directory holds anything of Cairn's.
#pragma once

#include <algorithm>
#include <string>

#include "files/files.hpp"

namespace cairn {

/// Local. Beside the id, which SCR_Init records: a run that has flushed nothing leaves nothing else
/// there. True where it cannot be seen now. `root` is <prefix>/.cairn.
inline bool is_prefix_used(Files& files, const std::string& root) {
  const auto names = files.list(root);
  if (!names) return names.error().code != Code::not_found;
  return std::any_of(names->begin(), names->end(), [](const std::string& name) {
    return name != "id" && !name.starts_with("id.");
  });
}

}  // namespace cairn
