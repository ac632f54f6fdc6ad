// The wrapped calls that look at a file, or change its attributes: each takes the file where it
// lies.
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <utime.h>

#include "interpose/located.hpp"
#include "interpose/next_call.hpp"

// For programs that were built with older versions of libc, whose headers had stat as functions of
// these names.
extern "C" {
int __xstat(int version, const char* path, struct stat* out);
int __xstat64(int version, const char* path, struct stat64* out);
int __lxstat(int version, const char* path, struct stat* out);
int __lxstat64(int version, const char* path, struct stat64* out);
int __fxstatat(int version, int directory, const char* path, struct stat* out, int flags);
int __fxstatat64(int version, int directory, const char* path, struct stat64* out, int flags);
ssize_t __readlink_chk(const char* path, char* out, size_t size, size_t limit);
ssize_t __readlinkat_chk(int directory, const char* path, char* out, size_t size, size_t limit);
}

using namespace cairn::interpose;  // NOLINT: the calls below are C's

// A call whose first argument is the path; `parameters` and `arguments` are the others.
#define CAIRN_WRAP_PATH(result, name, parameters, arguments, ...)                           \
  CAIRN_WRAPPED result name parameters __VA_ARGS__ {                                        \
    return on_existing(AT_FDCWD, path,                                                      \
                       [&](int, const char* found) { return CAIRN_NEXT(name) arguments; }); \
  }

// The same for a call with a directory before the path.
#define CAIRN_WRAP_AT(result, name, parameters, arguments, ...)                                \
  CAIRN_WRAPPED result name parameters __VA_ARGS__ {                                           \
    return on_existing(directory, path,                                                        \
                       [&](int at, const char* found) { return CAIRN_NEXT(name) arguments; }); \
  }

CAIRN_WRAP_PATH(int, stat, (const char* path, struct stat* out), (found, out), noexcept)
CAIRN_WRAP_PATH(int, stat64, (const char* path, struct stat64* out), (found, out), noexcept)
CAIRN_WRAP_PATH(int, lstat, (const char* path, struct stat* out), (found, out), noexcept)
CAIRN_WRAP_PATH(int, lstat64, (const char* path, struct stat64* out), (found, out), noexcept)
CAIRN_WRAP_AT(int, fstatat, (int directory, const char* path, struct stat* out, int flags),
              (at, found, out, flags), noexcept)
CAIRN_WRAP_AT(int, fstatat64, (int directory, const char* path, struct stat64* out, int flags),
              (at, found, out, flags), noexcept)
CAIRN_WRAP_AT(int, statx,
              (int directory, const char* path, int flags, unsigned mask, struct statx* out),
              (at, found, flags, mask, out), noexcept)
CAIRN_WRAP_PATH(int, __xstat, (int version, const char* path, struct stat* out),
                (version, found, out))
CAIRN_WRAP_PATH(int, __xstat64, (int version, const char* path, struct stat64* out),
                (version, found, out))
CAIRN_WRAP_PATH(int, __lxstat, (int version, const char* path, struct stat* out),
                (version, found, out))
CAIRN_WRAP_PATH(int, __lxstat64, (int version, const char* path, struct stat64* out),
                (version, found, out))
CAIRN_WRAP_AT(int, __fxstatat,
              (int version, int directory, const char* path, struct stat* out, int flags),
              (version, at, found, out, flags))
CAIRN_WRAP_AT(int, __fxstatat64,
              (int version, int directory, const char* path, struct stat64* out, int flags),
              (version, at, found, out, flags))

CAIRN_WRAP_PATH(int, access, (const char* path, int mode), (found, mode), noexcept)
CAIRN_WRAP_PATH(int, euidaccess, (const char* path, int mode), (found, mode), noexcept)
CAIRN_WRAP_PATH(int, eaccess, (const char* path, int mode), (found, mode), noexcept)
CAIRN_WRAP_AT(int, faccessat, (int directory, const char* path, int mode, int flags),
              (at, found, mode, flags), noexcept)

CAIRN_WRAP_PATH(int, chmod, (const char* path, mode_t mode), (found, mode), noexcept)
CAIRN_WRAP_PATH(int, lchmod, (const char* path, mode_t mode), (found, mode), noexcept)
CAIRN_WRAP_AT(int, fchmodat, (int directory, const char* path, mode_t mode, int flags),
              (at, found, mode, flags), noexcept)
CAIRN_WRAP_PATH(int, chown, (const char* path, uid_t user, gid_t group), (found, user, group),
                noexcept)
CAIRN_WRAP_PATH(int, lchown, (const char* path, uid_t user, gid_t group), (found, user, group),
                noexcept)
CAIRN_WRAP_AT(int, fchownat, (int directory, const char* path, uid_t user, gid_t group, int flags),
              (at, found, user, group, flags), noexcept)
CAIRN_WRAP_PATH(int, utime, (const char* path, const struct utimbuf* times), (found, times),
                noexcept)
CAIRN_WRAP_PATH(int, utimes, (const char* path, const struct timeval times[2]), (found, times),
                noexcept)
CAIRN_WRAP_PATH(int, lutimes, (const char* path, const struct timeval times[2]), (found, times),
                noexcept)
CAIRN_WRAP_AT(int, futimesat, (int directory, const char* path, const struct timeval times[2]),
              (at, found, times), noexcept)
CAIRN_WRAP_AT(int, utimensat,
              (int directory, const char* path, const struct timespec times[2], int flags),
              (at, found, times, flags), noexcept)

CAIRN_WRAP_PATH(ssize_t, getxattr, (const char* path, const char* name, void* value, size_t size),
                (found, name, value, size), noexcept)
CAIRN_WRAP_PATH(ssize_t, lgetxattr, (const char* path, const char* name, void* value, size_t size),
                (found, name, value, size), noexcept)
CAIRN_WRAP_PATH(ssize_t, listxattr, (const char* path, char* list, size_t size),
                (found, list, size), noexcept)
CAIRN_WRAP_PATH(ssize_t, llistxattr, (const char* path, char* list, size_t size),
                (found, list, size), noexcept)
CAIRN_WRAP_PATH(int, setxattr,
                (const char* path, const char* name, const void* value, size_t size, int flags),
                (found, name, value, size, flags), noexcept)
CAIRN_WRAP_PATH(int, lsetxattr,
                (const char* path, const char* name, const void* value, size_t size, int flags),
                (found, name, value, size, flags), noexcept)
CAIRN_WRAP_PATH(int, removexattr, (const char* path, const char* name), (found, name), noexcept)
CAIRN_WRAP_PATH(int, lremovexattr, (const char* path, const char* name), (found, name), noexcept)
CAIRN_WRAP_PATH(long, pathconf, (const char* path, int name), (found, name), noexcept)
CAIRN_WRAP_PATH(int, statfs, (const char* path, struct statfs* out), (found, out), noexcept)
CAIRN_WRAP_PATH(int, statfs64, (const char* path, struct statfs64* out), (found, out), noexcept)
CAIRN_WRAP_PATH(int, statvfs, (const char* path, struct statvfs* out), (found, out), noexcept)
CAIRN_WRAP_PATH(int, statvfs64, (const char* path, struct statvfs64* out), (found, out), noexcept)

CAIRN_WRAP_PATH(ssize_t, readlink, (const char* path, char* out, size_t size), (found, out, size),
                noexcept)
CAIRN_WRAP_PATH(ssize_t, __readlink_chk, (const char* path, char* out, size_t size, size_t limit),
                (found, out, size, limit))
CAIRN_WRAP_AT(ssize_t, readlinkat, (int directory, const char* path, char* out, size_t size),
              (at, found, out, size), noexcept)
CAIRN_WRAP_AT(ssize_t, __readlinkat_chk,
              (int directory, const char* path, char* out, size_t size, size_t limit),
              (at, found, out, size, limit))
