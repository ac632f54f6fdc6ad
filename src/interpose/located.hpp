#pragma once

#include <limits.h>

#include "interpose/process.hpp"
#include "interpose/system_calls.hpp"

namespace cairn::interpose {

/// A path that a program gave to a call: its directory as it is on disk, what is there in the plain
/// place, and what the cache has. It is made only for paths that may be checkpoint files, or
/// directories with some.
class Located {
 public:
  Located(Process& process, int directory, const char* path);

  Kind kind() const { return kind_; }
  /// A checkpoint file, or none yet: it may lie in the cache.
  bool is_ours() const { return is_ours_; }
  bool is_redirected() const { return is_redirected_; }
  /// A slash or a dot at its end: for a file, every call fails with ENOTDIR.
  bool names_directory() const { return names_directory_; }
  bool is_plain_there() const { return is_plain_there_; }
  bool is_directory() const { return is_plain_there_ && S_ISDIR(plain_.st_mode); }
  const struct stat& plain() const { return plain_; }
  const Match& match() const { return match_; }

  /// The directory of the name, for its permissions; -1 if it is missing.
  int parent() const { return parent_.number(); }
  const char* name() const { return name_; }
  /// Before the program's own open: the number of its descriptor is the lowest that is free.
  void close_parent() { parent_.reset(-1); }
  /// The kernel then says what it says of a file of such a name.
  void spell_as_directory() { place_.append("/"); }
  bool can_change_parent() const { return kernel::may_access(parent(), ".", W_OK | X_OK); }

  /// Where the file is in the cache, or would be. For a directory: what the cache has of it. Only
  /// below the prefix.
  const char* place() const { return place_memory_.bytes; }
  bool has_place() const { return has_place_; }
  /// The name from the prefix directory on, without symbolic links in its directory.
  std::string_view relative() const { return relative_; }
  /// As the program would name it from anywhere.
  std::string_view clean() const { return scratch_.view(); }
  /// The absolute path without symbolic links in its directory.
  bool canonical(PathText& out) const;

 private:
  bool decide(Process& process, int directory, const char* path);
  void find_parent(Process& process, int directory, const char* path);

  Kind kind_ = Kind::outside;
  Match match_;
  bool is_ours_ = false;
  bool names_directory_ = false;
  bool is_redirected_ = false;
  bool is_plain_there_ = false;
  bool has_place_ = false;
  struct stat plain_ {};
  Descriptor parent_;
  const char* name_ = "";
  std::string_view last_;  // the same without slashes behind it
  std::string_view relative_;
  PathBuffer<PATH_MAX> memory_;
  PathText scratch_ = memory_.text();
  PathBuffer<PATH_MAX> parent_memory_;
  PathText parent_path_ = parent_memory_.text();
  PathBuffer<PATH_MAX> place_memory_;
  PathText place_ = place_memory_.text();
};

/// The path of an open directory. False if it cannot be found out.
bool path_of_descriptor(int descriptor, PathText& out);

/// Moves a redirected file to its plain place, for calls that cannot be served in the cache.
/// Returns 0 or an errno.
int settle_file(Process& process, const Located& file);

/// The same for all files below a directory, if the path names one.
void settle_directory(Process& process, const Located& directory);

/// Gives each call that takes an existing file the place where it lies. `with` gets a directory and
/// a path.
template <class With>
auto on_existing(int directory, const char* path, const With& with);

}  // namespace cairn::interpose

#include "interpose/located_calls.hpp"
