#include "files/descriptor.hpp"

#include <sys/vfs.h>
#include <unistd.h>

namespace cairn {
namespace {

std::string_view describe(Kind kind) {
  switch (kind) {
    case Kind::file:
      return "a file";
    case Kind::folder:
      return "a directory";
    case Kind::link:
      return "a symbolic link";
    case Kind::other:
      break;
  }
  return "a device, pipe or socket";
}

}  // namespace

Descriptor::~Descriptor() {
  // Not repeated after EINTR: Linux has closed it by then. Errors of delayed writes are reported by
  // sync().
  if (number_ >= 0) ::close(number_);
}

int look_at(const std::string& path, struct stat& status) {
  return uninterrupted([&] { return ::lstat(path.c_str(), &status); });
}

Kind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return Kind::file;
  if (S_ISDIR(mode)) return Kind::folder;
  return S_ISLNK(mode) ? Kind::link : Kind::other;
}

Error path_error(int error_number, std::string_view action, const std::string& path) {
  const bool of_another_kind =
      error_number == ELOOP || error_number == ENOTDIR || error_number == EEXIST;
  struct stat status = {};
  if (!of_another_kind || look_at(path, status) != 0)
    return errno_error(error_number, action, path);
  const Kind kind = kind_of(status.st_mode);
  if (kind == Kind::link)
    return Error{Code::untrusted,
                 fmt::format("cannot {} {}: it is a symbolic link, and Cairn follows no links "
                             "here; give the path that it points to",
                             action, path),
                 -1};
  if (kind != Kind::folder)
    return Error{
        Code::io,
        fmt::format("cannot {} {}: it is {}, not a directory", action, path, describe(kind)), -1};
  return errno_error(error_number, action, path);
}

Result<Descriptor> open_unfollowed(const std::string& path, int flags, std::string_view action,
                                   std::uint32_t mode, Base base) {
  const char* name = base.name != nullptr ? base.name : path.c_str();
  const int number = uninterrupted([&] {
    return ::openat(base.directory, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                    mode);
  });
  if (number < 0) return tl::unexpected<Error>(path_error(errno, action, path));
  return Descriptor(number);
}

Result<OpenFile> open_regular(const std::string& path, int flags, std::string_view action,
                              std::uint32_t mode, Base base) {
  CAIRN_ASSIGN(Descriptor descriptor, open_unfollowed(path, flags, action, mode, base));
  CAIRN_ASSIGN(const struct stat status, stat_of(descriptor, action, path));
  const Kind kind = kind_of(status.st_mode);
  if (kind != Kind::file)
    return fail(Code::io, "cannot {} {}: it is {}, not a file", action, path, describe(kind));
  return OpenFile{std::move(descriptor), status};
}

Result<Descriptor> open_handle(const std::string& path, std::string_view action) {
  CAIRN_ASSIGN(Descriptor descriptor, open_unfollowed(path, O_PATH, action));
  CAIRN_ASSIGN(const struct stat status, stat_of(descriptor, action, path));
  // O_PATH opens the link itself instead of failing on it.
  if (S_ISLNK(status.st_mode)) return tl::unexpected<Error>(path_error(ELOOP, action, path));
  return descriptor;
}

Result<struct stat> stat_of(const Descriptor& descriptor, std::string_view action,
                            const std::string& path) {
  struct stat status = {};
  if (uninterrupted([&] { return ::fstat(descriptor.number(), &status); }) != 0)
    return tl::unexpected<Error>(errno_error(errno, action, path));
  return status;
}

Result<std::uint64_t> file_system_of(const Descriptor& descriptor, const std::string& path) {
  struct statfs status = {};
  if (uninterrupted([&] { return ::fstatfs(descriptor.number(), &status); }) != 0)
    return tl::unexpected<Error>(errno_error(errno, "inspect the file system of", path));
  return static_cast<std::uint64_t>(status.f_type);
}

}  // namespace cairn
