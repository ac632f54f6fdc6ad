// Keeps what is logged, for tests.
#pragma once

#include <mutex>
#include <string>

#include "base/log.hpp"

namespace cairn {

/// Ranks that are threads may log at once.
class LogCapture {
 public:
  Log log() {
    return Log([this](Severity, const std::string& text) {
      const std::scoped_lock lock(mutex_);
      text_ += text + "\n";
    });
  }
  void clear() { text_.clear(); }

  /// A message per line. While no rank runs.
  const std::string& text() const { return text_; }
  bool has(const std::string& words) const { return text_.find(words) != std::string::npos; }

 private:
  std::mutex mutex_;  ///< guards text_ while ranks run
  std::string text_;
};

}  // namespace cairn
