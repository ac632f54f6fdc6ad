// One line per thing worth telling, through a sink that the owner chooses.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>

namespace cairn {

enum class Severity { info, warning, error };

/// Where lines go; the text has no newline. Must be callable from several threads.
using LogSink = std::function<void(Severity, const std::string&)>;

/// "cairn: warning: TEXT" on stderr, further lines of it after "cairn: ". In one write, so that
/// lines of ranks never mix.
void log_to_stderr(Severity severity, const std::string& text);

/// Copies share nothing, so hand it by value.
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

/// Lets a state of affairs be reported when it changes, and not each time it is met.
class ChangeFilter {
 public:
  /// True unless it is what the last call was given.
  bool is_news(const std::string& state) {
    const bool news = state != last_;
    last_ = state;
    return news;
  }

 private:
  std::string last_;
};

}  // namespace cairn
