// Of which steps the cache takes new files.
#pragma once

#include <atomic>
#include <functional>
#include <string_view>

namespace cairn::interpose {

/// Once a rank is lost: of the step that this process is writing only, so that no step has its
/// files in two places.
class StepsTaken {
 public:
  /// From any thread.
  void take_no_new_ones() { takes_new_ones_ = false; }
  bool takes_new_ones() const { return takes_new_ones_; }

  /// Whether the cache takes a new file whose name has this step. A name without a number comes
  /// again in each step, so it shows no step that goes on.
  bool take(std::string_view step) {
    const bool has_number = !step.empty() && step[0] >= '0' && step[0] <= '9';
    const std::size_t mark = has_number ? std::hash<std::string_view>()(step) : none;
    if (!takes_new_ones_) return mark != none && mark == last_;
    last_ = mark;
    return true;
  }

 private:
  static constexpr std::size_t none = 0;
  std::atomic<bool> takes_new_ones_{true};
  std::atomic<std::size_t> last_{none};  // a hash: names may be long, and no memory is asked for
};

}  // namespace cairn::interpose
