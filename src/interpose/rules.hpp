#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interpose/clean_path.hpp"
#include "interpose/patterns.hpp"
#include "interpose/working_directory.hpp"

namespace cairn::interpose {

enum class Kind : unsigned char {
  outside,    // not below the prefix directory
  unmatched,  // below it, and no pattern matches, or the file is shared; a directory may hold
              // redirected files
  matched,    // a checkpoint file, if it is a file
  too_long,   // the memory given does not hold the path
};

struct Decision {
  Kind kind = Kind::outside;
  Match match;
  std::string_view relative;  // to the prefix directory; empty for that itself
  bool names_directory =
      false;  // by a slash or a dot at its end: a file of this name makes the call fail
};

/// Which paths are checkpoint files. A pure function of the path, the working directory and the
/// settings: a process that is forked, or starts another program, needs nothing else.
class Rules {
 public:
  Patterns patterns;

  /// `path` is absolute; the first one is the name without symbolic links, further ones are other
  /// names of it.
  void add_prefix(std::string_view path);
  bool has_prefix() const { return !prefixes_.empty(); }
  std::string_view prefix() const { return prefixes_.front(); }

  /// `scratch` holds what the answer points into.
  Decision decide(std::string_view path, WorkingDirectory& working_directory,
                  PathText& scratch) const;

  /// The same for a path relative to a directory.
  Decision decide_in(std::string_view directory, std::string_view path, PathText& scratch) const;

  /// For a path that is clean and absolute: whether it is the prefix directory or below it, and its
  /// name from there on.
  bool is_below(std::string_view clean, std::string_view& relative) const;

 private:
  Decision decide_clean(std::string_view clean, std::string_view path) const;

  std::vector<std::string> prefixes_;
};

/// Joins the two with a slash. False if `out` is too small.
bool place_of(std::string_view cache_files, std::string_view relative, PathText& out);

}  // namespace cairn::interpose
