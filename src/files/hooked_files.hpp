// A Files that calls a hook before each operation: for injected faults, simulated crashes and
// counting.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "files/files.hpp"

namespace cairn {

/// An operation that is about to begin. The views are valid only during the call of the hook.
struct FileOperation {
  /// The name of a function of Files ("create", "sync_folder", ...); "read", "write", "resize",
  /// "sync", "sync_all" and "size" for a File; "view_at" for a View; "sync_file_system" for a
  /// FileSystemSync.
  std::string_view name;
  std::string_view path;
  std::uint64_t index =
      0;  ///< 0, 1, 2... in the order of the calls, for this Files and all that it opened
  std::string_view to;      ///< the new name, for rename and link
  std::uint64_t bytes = 0;  ///< the length, for read, write, append and view_at
};

/// False for operations that only read. A crash before one of those leaves the same files as a
/// crash before the next change, so tests of crashes need not try both.
bool changes_files(const FileOperation& operation);

/// If the hook returns an Error, the operation is not done and fails with it. The hook may also
/// throw, which passes through to the caller, or end the process, which simulates a crash at this
/// point.
using FileHook = std::function<Status(const FileOperation&)>;

/// `hook` is called in the threads that use the result. `inner` must outlive the result and all
/// that it opened. effective_user, View::size, start_writing and closing do not call the hook, as
/// they cannot fail.
std::unique_ptr<Files> make_hooked_files(Files& inner, FileHook hook);

}  // namespace cairn
