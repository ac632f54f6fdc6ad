// The wrapped calls that give the path without symbolic links.
#include <stdlib.h>

#include <cstring>

#include "interpose/located.hpp"
#include "interpose/next_call.hpp"

extern "C" char* __realpath_chk(const char* path, char* out, size_t size);

using namespace cairn::interpose;  // NOLINT: the calls below are C's

namespace {

/// A redirected file keeps the path that the program knows; none of the cache comes out.
template <class Next>
char* real_path(const char* path, char* out, const Next& next) {
  Process* const here = process();
  if (here == nullptr || path == nullptr || here->is_dry_run() || here->is_plain(AT_FDCWD, path))
    return next();
  const int saved = errno;
  const Located file(*here, AT_FDCWD, path);
  PathBuffer<PATH_MAX> memory;
  PathText canonical = memory.text();
  errno = saved;
  if (!file.is_redirected() || !file.canonical(canonical)) return next();
  return out == nullptr
             ? strdup(canonical.text)
             : static_cast<char*>(std::memcpy(out, canonical.text, canonical.length + 1));
}

}  // namespace

CAIRN_WRAPPED char* realpath(const char* path, char* out) noexcept {
  return real_path(path, out, [&] { return CAIRN_NEXT(realpath)(path, out); });
}

CAIRN_WRAPPED char* __realpath_chk(const char* path, char* out, size_t size) {
  return size < PATH_MAX ? CAIRN_NEXT(__realpath_chk)(path, out, size)
                         : real_path(path, out, [&] { return CAIRN_NEXT(realpath)(path, out); });
}

CAIRN_WRAPPED char* canonicalize_file_name(const char* path) noexcept {
  return real_path(path, nullptr, [&] { return CAIRN_NEXT(canonicalize_file_name)(path); });
}
