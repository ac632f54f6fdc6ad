#pragma once

#include <cstddef>
#include <string_view>

namespace cairn::interpose {

/// A path in memory of the caller: calls that a program makes from a signal handler may neither
/// allocate nor use much stack.
struct PathText {
  char* text;
  std::size_t capacity;  // with the zero at the end
  std::size_t length = 0;

  std::string_view view() const { return {text, length}; }
  bool assign(std::string_view whole);
  bool append(std::string_view more);
};

/// Memory for a PathText.
template <std::size_t N>
struct PathBuffer {
  char bytes[N];  // not initialised: most calls need none of it
  PathText text() { return {bytes, N}; }
};

/// Whether a path has no ".", "..", "//" or slash at its end. Says false for a few clean names that
/// begin with a dot: they only take the longer way.
bool is_surely_clean(std::string_view path);

/// Sets `out` to the absolute path without ".", ".." and "//". `directory` is absolute and clean.
/// ".." removes the name before it, also where that is a symbolic link. False if `out` is too
/// small.
bool clean_path(std::string_view directory, std::string_view path, PathText& out);

}  // namespace cairn::interpose
