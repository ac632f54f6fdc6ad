#pragma once

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

/// System calls past every wrapper, ours and those of other preloaded libraries. They return -1 and
/// set errno.
namespace cairn::interpose::kernel {

inline int open_at(int directory, const char* path, int flags, mode_t mode = 0) {
  return static_cast<int>(syscall(SYS_openat, directory, path, flags | O_LARGEFILE, mode));
}
inline int close(int descriptor) { return static_cast<int>(syscall(SYS_close, descriptor)); }
inline int stat_at(int directory, const char* path, struct stat& state,
                   int flags = AT_SYMLINK_NOFOLLOW) {
  return static_cast<int>(syscall(SYS_newfstatat, directory, path, &state, flags));
}
inline int stat_of(int descriptor, struct stat& state) {
  return static_cast<int>(syscall(SYS_fstat, descriptor, &state));
}
inline int make_directory_at(int directory, const char* path, mode_t mode) {
  return static_cast<int>(syscall(SYS_mkdirat, directory, path, mode));
}
inline int unlink_at(int directory, const char* path, int flags = 0) {
  return static_cast<int>(syscall(SYS_unlinkat, directory, path, flags));
}
inline int rename_at(int from, const char* old_path, int to, const char* new_path,
                     unsigned flags = 0) {
  return static_cast<int>(syscall(SYS_renameat2, from, old_path, to, new_path, flags));
}
inline int link_at(int from, const char* old_path, int to, const char* new_path) {
  return static_cast<int>(syscall(SYS_linkat, from, old_path, to, new_path, 0));
}
inline long read_link_at(int directory, const char* path, char* out, std::size_t capacity) {
  return syscall(SYS_readlinkat, directory, path, out, capacity);
}
inline long write(int descriptor, const void* data, std::size_t size) {
  return syscall(SYS_write, descriptor, data, size);
}

/// By the effective user, where the kernel can (5.8).
inline bool may_access(int directory, const char* path, int mode) {
#ifdef SYS_faccessat2
  if (syscall(SYS_faccessat2, directory, path, mode, AT_EACCESS) == 0) return true;
  if (errno != ENOSYS) return false;
#endif
  return syscall(SYS_faccessat, directory, path, mode) == 0;
}

}  // namespace cairn::interpose::kernel

namespace cairn::interpose {

/// Programs expect the low numbers for their own files.
inline constexpr int high_descriptor = 200;

/// Gives a descriptor a high number, if the limits of the process allow it.
inline int at_high_number(int descriptor) {
  if (descriptor < 0) return descriptor;
  const long moved = syscall(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, high_descriptor);
  if (moved < 0) return descriptor;
  kernel::close(descriptor);
  return static_cast<int>(moved);
}

/// A descriptor that is closed at the end, past every wrapper.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(-1); }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void reset(int number) {
    if (number_ >= 0) kernel::close(number_);
    number_ = number;
  }

 private:
  int number_ = -1;
};

/// The program sees the errno that its own call sets, and none of ours.
class KeptErrno {
 public:
  KeptErrno() : saved_(errno) {}
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;
  ~KeptErrno() { errno = saved_; }

 private:
  int saved_;
};

}  // namespace cairn::interpose
