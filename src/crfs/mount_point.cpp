#include "crfs/mount_point.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <filesystem>

namespace cairn {
namespace {

std::string without_links(const std::string& path) {
  std::error_code unknown;
  const auto real = std::filesystem::canonical(path, unknown);
  return unknown ? path : real.string();
}

/// An automounter waits for a mount on this mount point.
bool waits_for_a_mount(const std::string& path) {
  struct statfs about = {};
  return ::statfs(path.c_str(), &about) == 0 && about.f_type == AUTOFS_SUPER_MAGIC;
}

bool is_mount(const std::string& path, const struct stat& status) {
  struct statx about = {};
  const bool answered = ::statx(AT_FDCWD, path.c_str(), AT_NO_AUTOMOUNT, 0, &about) == 0;
  if (answered && (about.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0)
    return (about.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  struct stat above = {};  // before Linux 5.8
  return ::stat((path + "/..").c_str(), &above) == 0 && above.st_dev != status.st_dev;
}

bool are_same(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace

Status check_mount_point(const Descriptor& root, const std::string& backing,
                         const std::string& mountpoint) {
  struct stat at = {};
  struct stat below = {};
  if (::stat(mountpoint.c_str(), &at) != 0)
    return tl::unexpected<Error>(errno_error(errno, "use the mount point", mountpoint));
  if (::fstat(root.number(), &below) == 0 && are_same(at, below))
    return fail(Code::bad_argument,
                "{} and {} are the same directory: the mount would hide the files from all other "
                "programs; give another mount point",
                backing, mountpoint);
  const std::string real = without_links(mountpoint);
  const std::string base = without_links(backing);
  if (real.starts_with(base == "/" ? "/" : base + "/"))
    return fail(Code::bad_argument,
                "{} lies in the backing directory {}, so crfs would wait for itself: give a mount "
                "point outside it",
                mountpoint, backing);
  if (is_mount(real, at) && !waits_for_a_mount(real))
    return fail(Code::bad_argument,
                "{} is a mount point already, and its files would be hidden: unmount it first "
                "(fusermount3 -u {}, or umount), or give another mount point",
                mountpoint, mountpoint);
  return {};
}

}  // namespace cairn
