#include "base/log.hpp"

#include <unistd.h>

namespace cairn {

void log_to_stderr(Severity severity, const std::string& text) {
  const char* kind = severity == Severity::error     ? "error: "
                     : severity == Severity::warning ? "warning: "
                                                     : "";
  const std::string line = fmt::format("cairn: {}{}\n", kind, text);
  // A log line that cannot be written has nowhere left to be reported.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace cairn
