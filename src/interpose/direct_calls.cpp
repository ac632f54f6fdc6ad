// Cairn's own calls in the library of a wrapped job: they must not be redirected. Linked into that
// library and hidden there, these come before the preloaded ones.
#include <dirent.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

#include "interpose/system_calls.hpp"

namespace kernel = cairn::interpose::kernel;

#define CAIRN_DIRECT extern "C" __attribute__((visibility("hidden")))

namespace {

/// libc's, which comes after this library.
template <class F>
F* of_libc(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

CAIRN_DIRECT int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return kernel::open_at(AT_FDCWD, path, flags, mode);
}

CAIRN_DIRECT int openat(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return kernel::open_at(directory, path, flags, mode);
}

CAIRN_DIRECT int stat(const char* path, struct stat* state) noexcept {
  return kernel::stat_at(AT_FDCWD, path, *state, 0);
}
CAIRN_DIRECT int lstat(const char* path, struct stat* state) noexcept {
  return kernel::stat_at(AT_FDCWD, path, *state);
}
CAIRN_DIRECT int mkdir(const char* path, mode_t mode) noexcept {
  return kernel::make_directory_at(AT_FDCWD, path, mode);
}
CAIRN_DIRECT int rename(const char* from, const char* to) noexcept {
  return kernel::rename_at(AT_FDCWD, from, AT_FDCWD, to);
}
CAIRN_DIRECT int link(const char* from, const char* to) noexcept {
  return kernel::link_at(AT_FDCWD, from, AT_FDCWD, to);
}
CAIRN_DIRECT int unlink(const char* path) noexcept { return kernel::unlink_at(AT_FDCWD, path); }
CAIRN_DIRECT int rmdir(const char* path) noexcept {
  return kernel::unlink_at(AT_FDCWD, path, AT_REMOVEDIR);
}
CAIRN_DIRECT int chmod(const char* path, mode_t mode) noexcept {
  return static_cast<int>(syscall(SYS_fchmodat, AT_FDCWD, path, mode));
}
CAIRN_DIRECT int utimensat(int directory, const char* path, const timespec times[2],
                           int flags) noexcept {
  return static_cast<int>(syscall(SYS_utimensat, directory, path, times, flags));
}
CAIRN_DIRECT int faccessat(int directory, const char* path, int mode, int flags) noexcept {
  return of_libc<int(int, const char*, int, int)>("faccessat")(directory, path, mode, flags);
}

// A stream of a directory that was opened here lists what is there.
CAIRN_DIRECT DIR* fdopendir(int descriptor) { return of_libc<DIR*(int)>("fdopendir")(descriptor); }
CAIRN_DIRECT dirent* readdir(DIR* stream) { return of_libc<dirent*(DIR*)>("readdir")(stream); }
CAIRN_DIRECT int closedir(DIR* stream) { return of_libc<int(DIR*)>("closedir")(stream); }
