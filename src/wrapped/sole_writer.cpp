#include "wrapped/sole_writer.hpp"

#include <signal.h>

#include <cerrno>

namespace cairn {

void SoleWriter::note(std::string_view name, pid_t process, std::int64_t step) {
  if (process == 0) process = process_;
  const bool begins = step != step_;
  const bool is_known_name = !names_.emplace(name).second;
  if (!step_) {
    process_ = process;
  } else if (begins) {
    is_mixed_ = is_mixed_ || has_others_ || (process != process_ && !takes_over(is_known_name));
    process_ = process;
    is_first_step_ = false;
  } else if (process != process_) {
    has_others_ = true;
    is_mixed_ = is_mixed_ || !is_first_step_;
  }
  step_ = step;
}

/// A process of its own name, which the other did not have, is not its successor.
bool SoleWriter::takes_over(bool is_known_name) const {
  const bool has_ended = process_ > 0 && ::kill(process_, 0) != 0 && errno == ESRCH;
  return is_known_name && has_ended;
}

}  // namespace cairn
