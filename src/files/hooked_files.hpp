// A Files that asks before each operation: for injected faults, simulated crashes and counting.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "files/files.hpp"

namespace cairn {

/// An operation that is about to be done. The views are good during the call of the hook only.
struct FileOperation {
  /// The function's name for those of Files ("create", "sync_folder", ...); "read", "write",
  /// "resize", "sync", "sync_all" and "size" of a File; "view_at" of a View; "sync_file_system" of
  /// what open_file_system gave.
  std::string_view name;
  std::string_view path;
  std::uint64_t index = 0;  ///< 0, 1, 2... in the order asked, over this Files and what it opened
  std::string_view to;      ///< of rename and link: the new name
  std::uint64_t bytes = 0;  ///< of read, write, append and view_at: how many
};

/// False for operations that only read. A process that dies before one of those leaves what it
/// leaves when it dies before the next change, so tests of crashes need not try both.
bool changes_files(const FileOperation& operation);

/// An Error means that the operation is not done and fails with it. It may also throw, which passes
/// through to the caller, or end the process: what a crash at this point leaves behind.
using FileHook = std::function<Status(const FileOperation&)>;

/// `hook` is called from whichever threads use the result. `inner` must outlive the result and all
/// that was opened by it. effective_user, View::size, start_writing and closing ask nobody: they
/// cannot fail.
std::unique_ptr<Files> make_hooked_files(Files& inner, FileHook hook);

}  // namespace cairn
