// Which process writes the steps whose names repeat.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace cairn {

/// Where names repeat, they do not show to which step a file belongs: only the order in which they
/// are written does. So one process has to write them. If several do, one of them may be a step
/// ahead of another, and steps may mix (docs/adr/0042-agreement-without-the-program.md).
///
/// Several processes may write a first step together, as long as no second one begins. A process
/// may take over from one that has ended, as when a program is started again.
class SoleWriter {
 public:
  /// A process begins to write a file of this step, which is not older than that of the call
  /// before. 0: the same process as in that call.
  void note(std::string_view name, pid_t process, std::int64_t step);
  /// Steps may mix, from now on.
  bool is_mixed() const { return is_mixed_; }
  /// The newest one.
  std::optional<std::int64_t> step() const { return step_; }

 private:
  bool takes_over(bool is_known_name) const;

  std::optional<std::int64_t> step_;
  pid_t process_ = 0;
  std::set<std::string, std::less<>> names_;
  bool is_first_step_ = true;
  bool has_others_ = false;  ///< other processes have written files of the first step
  bool is_mixed_ = false;
};

}  // namespace cairn
