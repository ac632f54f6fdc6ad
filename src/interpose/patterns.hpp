#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::interpose {

/// What a pattern found in a name. `step` is a part of that name; empty if the pattern has no group
/// of this name.
struct Match {
  int pattern = -1;  // none
  std::string_view step;
  /// The pattern has a group for the rank, and the name has none: all ranks read this file.
  bool is_shared = false;

  explicit operator bool() const { return pattern >= 0; }
};

/// The regular expressions (Perl's syntax) that choose checkpoint files. find() allocates nothing
/// and takes no lock, so that it can be called from a signal handler, and from many threads at
/// once.
class Patterns {
 public:
  Patterns();
  ~Patterns();
  Patterns(const Patterns&) = delete;
  Patterns& operator=(const Patterns&) = delete;

  /// Adds one pattern. Returns why it is wrong, empty if it is not.
  std::string add(const std::string& expression);

  /// Adds those of SCR_CHECKPOINT_PATTERN for a rank: `lo-hi:expression` or `lo-N:expression`, each
  /// an extended regular expression of POSIX, separated by `token`.
  std::string add_of_scr(std::string_view list, std::string_view token, int rank);

  bool empty() const { return expressions_.empty(); }
  const std::string& expression(int index) const {
    return expressions_[static_cast<std::size_t>(index)];
  }

  /// The first pattern that matches somewhere in the name.
  Match find(std::string_view name) const;

  /// In the child after fork: other threads, and what they used, do not exist there.
  void adopt_process() const;

 private:
  struct Compiled;
  class Workspaces;

  std::vector<std::string> expressions_;
  std::vector<std::unique_ptr<Compiled>> compiled_;
  std::unique_ptr<Workspaces> workspaces_;
};

}  // namespace cairn::interpose
