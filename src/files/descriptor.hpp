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
  /// Returns the descriptor and no longer owns it; the caller must close it.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

Kind kind_of(mode_t mode);

/// lstat; sets errno.
int look_at(const std::string& path, struct stat& status);

/// errno_error, with two clearer cases: the path is a link, which was not followed, or it is not a
/// directory and should be one. For these errno alone is ambiguous.
Error path_error(int error_number, std::string_view action, const std::string& path);

/// Where a path is opened: `name` below an open directory; without a name the whole path.
struct Base {
  int directory = AT_FDCWD;
  const char* name = nullptr;
};

/// Opens everything except a link. It never waits for the other end of a pipe, never makes a
/// terminal the controlling one, and programs started later do not inherit the descriptor.
Result<Descriptor> open_unfollowed(const std::string& path, int flags, std::string_view action,
                                   std::uint32_t mode = 0, Base base = {});

/// A descriptor, and the file's status when it was opened.
struct OpenFile {
  Descriptor descriptor;
  struct stat status;

  std::uint64_t size() const { return static_cast<std::uint64_t>(status.st_size); }
};

/// The same; fails if the path is not a regular file.
Result<OpenFile> open_regular(const std::string& path, int flags, std::string_view action,
                              std::uint32_t mode = 0, Base base = {});

/// A handle on everything except a link. It gives access to attributes, not to data, and needs no
/// permission on the file itself.
Result<Descriptor> open_handle(const std::string& path, std::string_view action);

Result<struct stat> stat_of(const Descriptor& descriptor, std::string_view action,
                            const std::string& path);

/// The type of the file system, TMPFS_MAGIC and so on.
Result<std::uint64_t> file_system_of(const Descriptor& descriptor, const std::string& path);

}  // namespace cairn
