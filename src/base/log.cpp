#include "base/log.hpp"

#include <unistd.h>

#include "base/colour.hpp"

namespace cairn {

void log_to_stderr(Severity severity, const std::string& text) {
  std::string kind = severity == Severity::error     ? "error:"
                     : severity == Severity::warning ? "warning:"
                                                     : "";
  if (!kind.empty() && has_colour(STDERR_FILENO))
    kind = coloured(kind, severity == Severity::error ? Colour::red : Colour::yellow);
  if (!kind.empty()) kind += ' ';
  std::string line = fmt::format("cairn: {}{}\n", kind, text);
  for (auto end = line.find('\n'); end + 1 < line.size(); end = line.find('\n', end + 1))
    line.insert(end + 1, "cairn: ");
  // If a log line cannot be written, there is no other place to report that.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace cairn
