#include "base/error.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/units.hpp"

namespace cairn {

std::string_view name_of(Code code) {
  static constexpr std::array<std::string_view, 17> names = {
      "ok",           "wrong_state", "differs", "bad_argument", "bad_setting", "io",
      "no_space",     "corrupt",     "lost",    "wrong_ranks",  "not_found",   "busy",
      "newer_format", "untrusted",   "invalid", "disabled",     "not_copied"};
  const auto index = static_cast<std::size_t>(code);
  return index < names.size() ? names[index] : "unknown";
}

namespace {

Code code_of_errno(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return Code::no_space;
    case ENOENT:
    case ENOTDIR:  // a component of the path is not a directory
      return Code::not_found;
    case ELOOP:
      return Code::untrusted;
    default:
      return Code::io;
  }
}

constexpr std::string_view unmount_command = "fusermount3 -u";

/// The topmost parent directory of `path` whose FUSE server is dead; `path` if there is none.
std::string dead_mount_of(const std::string& path) {
  for (std::size_t end = path.find('/', 1); end != path.npos; end = path.find('/', end + 1)) {
    struct stat status = {};
    const std::string above = path.substr(0, end);
    if (::stat(above.c_str(), &status) != 0 && errno == ENOTCONN) return above;
  }
  return path;
}

/// " (1.0 MiB of 4.0 GiB free)" for the file system of `path` or of its parent directory; "" if
/// neither exists.
std::string free_space_at(const std::string& path) {
  struct statvfs space = {};
  const std::string directory = path.substr(0, path.rfind('/'));
  if (::statvfs(path.c_str(), &space) != 0 &&
      (directory.empty() || ::statvfs(directory.c_str(), &space) != 0))
    return "";
  if (space.f_files > 0 && space.f_favail == 0) return " (no inode free)";
  const auto bytes = [&space](std::uint64_t blocks) {
    return format_bytes(blocks * space.f_frsize);
  };
  return fmt::format(" ({} of {} free)", bytes(space.f_bavail), bytes(space.f_blocks));
}

}  // namespace

Error errno_error(int error_number, std::string_view action, std::string_view path) {
  const std::string free = error_number == ENOSPC ? free_space_at(std::string(path)) : "";
  std::string text =
      fmt::format("cannot {} {}{}: {}", action, path, free, std::strerror(error_number));
  if (error_number == ENOTCONN) {
    const std::string mount = dead_mount_of(std::string(path));
    text += fmt::format(
        "; the process that served the mount {} has ended: unmount it ({} {}), then mount it again",
        mount, unmount_command, mount);
  }
  return Error{code_of_errno(error_number), std::move(text), -1, false, error_number};
}

std::string cause_of(const Error& error) {
  const std::size_t colon = error.text.rfind(": ");
  const std::string reason = colon == error.text.npos ? error.text : error.text.substr(colon + 2);
  return fmt::format("{}: {}", name_of(error.code), reason.substr(0, reason.find(" (rank ")));
}

bool concerns_files(const Error& error) {
  switch (error.code) {
    case Code::io:
    case Code::no_space:
    case Code::corrupt:
    case Code::untrusted:
      return true;
    case Code::not_found:  // also used for datasets; errors of files come from errno_error()
      return error.text.find("cannot ") != std::string::npos;
    default:
      return false;
  }
}

std::string_view remedy_for(const Error& error, Storage storage) {
  if (!concerns_files(error)) return "";
  if (error.text.find(unmount_command) != error.text.npos) return "";  // the text has a remedy
  const bool cached = storage == Storage::cache;
  switch (error.code) {
    case Code::not_found:
      return "if it existed, find out what removed it while the job was running";
    case Code::io:
      return cached ? "if the error recurs, leave that node out of the next run"
                    : "check that you may write there (SCR_PREFIX), and that the file system works "
                      "on all nodes";
    case Code::no_space:
      return cached ? "free space there, or set SCR_CACHE_BASE to a larger store"
                    : "free space there, ask for a larger quota, or keep fewer checkpoints with "
                      "SCR_PREFIX_SIZE";
    case Code::untrusted:
      return cached ? "remove it, or set SCR_CACHE_BASE to a directory of your own"
                    : "replace the link by what it points to";
    default:
      return "";
  }
}

}  // namespace cairn
