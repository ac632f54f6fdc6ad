// Crashes and errors that tests inject into file operations.
#pragma once

#include <string>

#include "files/hooked_files.hpp"

namespace cairn {

/// Under sanitizers everything takes ten times as long: loops over crash points take larger steps.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Thrown by a hook: the rank is dead, and the job with it.
struct Crash {};

/// The hook lets `count` operations on paths that begin with `within` pass, then crashes. Changes
/// count, and the first operation after each change: before it, other ranks may still be where they
/// were.
FileHook crash_after(int count, const std::string& within = {});

/// The hook lets `count` operations pass, then one fails. `failed` is its name, or "spare" if its
/// path is a spare file.
FileHook fail_after(int count, Code code, std::string& failed);

}  // namespace cairn
