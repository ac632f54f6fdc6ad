// Lets the caller report something once.
#pragma once

#include <utility>

namespace cairn {

class Once {
 public:
  /// True at the first call only.
  bool is_first() { return !std::exchange(has_passed_, true); }
  /// is_first() was called before.
  bool has_passed() const { return has_passed_; }

 private:
  bool has_passed_ = false;
};

}  // namespace cairn
