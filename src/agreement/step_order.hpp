// Numbers the steps of a program by what the names of its files say.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cairn {

/// A step of a program. A later step has a greater number, and all ranks give it the same one.
struct Step {
  std::int64_t number = 0;
  /// Of the text that stands for the step, if that is no number. Ranks that count differently are
  /// found by it.
  std::uint32_t mark = 0;

  bool operator==(const Step&) const = default;
};

/// The number of a step whose text is a decimal number ("1000", "0.25", "1e-05"): these are in the
/// order of their values. Nothing for other texts, and for negative values.
std::optional<std::int64_t> number_in(std::string_view text);

/// One rank's count of steps.
class StepOrder {
 public:
  /// The step of a file that the rank begins to write. `text` stands for the step in its name, and
  /// is empty where the pattern has no group for it. `begins_anew`: the file is written from its
  /// beginning, and the rank has written one of this name before in this step.
  ///
  /// Where the text is no number, names come again ("restart.a", "restart.b", "restart.a"), and
  /// each occurrence is a step.
  Step step_of(std::string_view text, bool begins_anew);
  /// The steps whose names have no numbers are counted on from here.
  void count_from(std::int64_t count) { newest_ = std::max(newest_, count); }

 private:
  std::int64_t newest_ = 0;
  std::optional<std::string> text_;  ///< of the newest step, if that has no number
};

}  // namespace cairn
