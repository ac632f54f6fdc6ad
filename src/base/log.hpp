// Log lines, written to a sink that the owner chooses.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>

namespace cairn {

enum class Severity { info, warning, error };

/// Receives lines; the text has no trailing newline. Several threads may call it.
using LogSink = std::function<void(Severity, const std::string&)>;

/// Writes "cairn: warning: TEXT" to stderr, and further lines of the text after "cairn: ". It makes
/// one write, so that lines of ranks do not mix.
void log_to_stderr(Severity severity, const std::string& text);

/// Copies are independent, so pass it by value.
class Log {
 public:
  Log() = default;
  explicit Log(LogSink sink) : sink_(std::move(sink)) {}

  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const {
    write(Severity::info, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void warning(fmt::format_string<Args...> format, Args&&... args) const {
    write(Severity::warning, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const {
    write(Severity::error, format, std::forward<Args>(args)...);
  }

 private:
  template <class... Args>
  void write(Severity severity, fmt::format_string<Args...> format, Args&&... args) const {
    if (sink_) sink_(severity, fmt::format(format, std::forward<Args>(args)...));
  }

  LogSink sink_;
};

/// Lets the caller report a state when it changes, and not each time.
class ChangeFilter {
 public:
  /// True if `state` differs from that of the last call.
  bool is_news(const std::string& state) {
    const bool news = state != last_;
    last_ = state;
    return news;
  }

 private:
  std::string last_;
};

}  // namespace cairn
