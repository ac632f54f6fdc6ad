#pragma once

#include "interpose/located.hpp"

namespace cairn::interpose {

/// The job may move a file to its plain place between the look at it and the call; then a call is
/// made again, so often at most.
inline constexpr int attempts_most = 3;

inline bool has_found_nothing(long result) { return result < 0 && errno == ENOENT; }
inline bool has_found_nothing(const void* result) { return result == nullptr && errno == ENOENT; }

/// A separate function, as a call with a plain path must not need its memory.
template <class With>
__attribute__((noinline)) auto on_existing_checkpoint(Process& here, int directory,
                                                      const char* path, const With& with) {
  const int saved = errno;
  for (int attempt = 0; attempt < attempts_most; ++attempt) {
    Located file(here, directory, path);
    errno = saved;
    if (!file.is_redirected()) break;
    if (file.names_directory()) file.spell_as_directory();
    const auto result = with(AT_FDCWD, file.place());
    if (!has_found_nothing(result)) return result;
  }
  errno = saved;
  return with(directory, path);
}

template <class With>
auto on_existing(int directory, const char* path, const With& with) {
  Process* const here = process();
  // A dry run reports the files that are opened and changed; it has nothing to do where one is
  // looked at.
  if (here == nullptr || path == nullptr || here->is_dry_run() || here->is_plain(directory, path))
    return with(directory, path);
  return on_existing_checkpoint(*here, directory, path, with);
}

}  // namespace cairn::interpose
