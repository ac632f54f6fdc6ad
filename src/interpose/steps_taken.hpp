// Of which steps the cache takes new files.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string_view>

namespace cairn::interpose {

/// The cache takes new files of all steps, until a rank is lost. From then on it takes those of the
/// step only that this process is writing, so that no step has its files in two places.
class StepsTaken {
 public:
  /// From any thread.
  void take_no_new_ones() { takes_new_ones_ = false; }
  bool takes_new_ones() const { return takes_new_ones_; }

  /// Whether the cache takes a new file whose name has this step. A name without a number comes
  /// again in each step, so it does not show which step is being written.
  bool take(std::string_view step) {
    const std::size_t mark = is_number(step) ? std::hash<std::string_view>()(step) : none;
    if (!takes_new_ones_) return mark != none && mark == last_;
    if (mark != none) last_ = mark;
    return true;
  }

 private:
  static constexpr std::size_t none = 0;

  /// Whether it reads like one that is not negative: Fortran writes ".5".
  static bool is_number(std::string_view text) {
    const std::size_t digit = text.find_first_of("0123456789");
    return (digit == 0 || (digit == 1 && text[0] == '.')) &&
           text.find_first_not_of("0123456789.eE+-") == std::string_view::npos;
  }

  std::atomic<bool> takes_new_ones_{true};
  std::atomic<std::size_t> last_{none};  // a hash: names may be long, and no memory is asked for
};

}  // namespace cairn::interpose
