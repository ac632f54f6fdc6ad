#include "support/faults.hpp"

#include <utility>

namespace cairn {

FileHook crash_after(int count, const std::string& within) {
  return [=, has_changed = true](const FileOperation& operation) mutable -> Status {
    if (!operation.path.starts_with(within)) return {};
    const bool changes = changes_files(operation);
    if ((changes || std::exchange(has_changed, false)) && count-- == 0) throw Crash();
    has_changed = has_changed || changes;
    return {};
  };
}

FileHook fail_after(int count, Code code, std::string& failed) {
  return [count, code, &failed](const FileOperation& operation) mutable -> Status {
    if (count-- != 0) return {};
    const bool is_spare = operation.path.find("/spare.") != std::string_view::npos;
    failed = is_spare ? "spare" : operation.name;
    return fail(code, "injected: cannot {} {}", operation.name, operation.path);
  };
}

}  // namespace cairn
