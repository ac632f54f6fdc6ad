#pragma once

#include <dirent.h>

#include <climits>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::interpose {

struct ListedFile {
  std::string name;
  ino_t inode;
};

/// The redirected files of a directory, as a listing shows them behind the other names.
class AddedNames {
 public:
  explicit AddedNames(std::vector<ListedFile> files);

  /// Whether a name of the file system is left out, because the redirected file of this name is
  /// newer.
  bool hides(std::string_view name) const;

  std::size_t size() const { return files_.size(); }
  const ListedFile& at(std::size_t index) const { return files_[index]; }

 private:
  std::vector<ListedFile> files_;  // by name
};

/// A position behind the names of the file system, for telldir and seekdir. Theirs are not
/// negative, and any other number may be one of them; -1 is telldir's error.
constexpr long position_of(std::size_t index) { return LONG_MIN + static_cast<long>(index); }
constexpr bool is_position_of_added(long position) { return position < -1; }
constexpr std::size_t index_of(long position) {
  return static_cast<std::size_t>(position - LONG_MIN);
}

}  // namespace cairn::interpose
