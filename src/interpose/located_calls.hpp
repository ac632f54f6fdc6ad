#pragma once

#include "interpose/located.hpp"

namespace cairn::interpose {

/// A separate function, as a call with a plain path must not need its memory.
template <class With>
__attribute__((noinline)) auto on_existing_checkpoint(Process& here, int directory,
                                                      const char* path, const With& with) {
  const int saved = errno;
  Located file(here, directory, path);
  if (file.is_redirected() && file.names_directory()) file.spell_as_directory();
  errno = saved;
  return file.is_redirected() ? with(AT_FDCWD, file.place()) : with(directory, path);
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
