// A file descriptor that closes itself, and the one way this room opens a path.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "files/files.hpp"
#include "files/uninterrupted.hpp"

namespace cairn {

/// Owns an open file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  int number() const { return number_; }
  /// Gives the descriptor away; the caller closes it.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

Kind kind_of(mode_t mode);

/// lstat, errno set.
int look_at(const std::string& path, struct stat& status);

/// errno_error, but a link that was not followed is named as such, whatever errno says about it,
/// and so is what is there and should be a folder: that is not the same as nothing.
Error path_error(int error_number, std::string_view action, const std::string& path);

/// Where a path is looked for: the name from an open folder, or else all of the path.
struct Base {
  int folder = AT_FDCWD;
  const char* name = nullptr;
};

/// Opens anything but a link. Never waits for the other end of a pipe, never becomes the
/// controlling terminal, never leaks into a program started later.
Result<Descriptor> open_unfollowed(const std::string& path, int flags, std::string_view action,
                                   std::uint32_t mode = 0, Base base = {});

/// With its status as it was opened.
struct OpenFile {
  Descriptor descriptor;
  struct stat status;

  std::uint64_t size() const { return static_cast<std::uint64_t>(status.st_size); }
};

/// The same, and it is an error if what was opened is no regular file.
Result<OpenFile> open_regular(const std::string& path, int flags, std::string_view action,
                              std::uint32_t mode = 0, Base base = {});

/// A handle on a path of any kind but a link, good for asking about it and not for reading: needs
/// no permission on the file itself.
Result<Descriptor> open_handle(const std::string& path, std::string_view action);

Result<struct stat> stat_of(const Descriptor& descriptor, std::string_view action,
                            const std::string& path);

/// The type of the file system, TMPFS_MAGIC and so on.
Result<std::uint64_t> file_system_of(const Descriptor& descriptor, const std::string& path);

}  // namespace cairn
