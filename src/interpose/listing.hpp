#pragma once

#include <dirent.h>

#include <string>
#include <vector>

namespace cairn::interpose {

struct ListedFile {
  std::string name;
  ino_t inode;
};

/// What a listing of a directory shows besides the names that are there: the redirected files, in
/// order, each once. A name that is in both is listed where it is really; a call that opens it
/// takes the redirected file, which is newer.
std::vector<ListedFile> added_names(const std::vector<std::string>& real,
                                    std::vector<ListedFile> redirected);

/// A position in such a listing, for telldir and seekdir: those of the file system are below it.
constexpr long first_added_position = 1L << 62;

}  // namespace cairn::interpose
