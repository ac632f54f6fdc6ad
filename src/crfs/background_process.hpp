// A command that goes on in the background once it has started successfully.
#pragma once

#include <optional>

#include "base/log.hpp"
#include "files/descriptor.hpp"

namespace cairn {

class BackgroundProcess {
 public:
  explicit BackgroundProcess(bool foreground) : foreground_(foreground) {}

  /// Call before any thread is started. In the parent: waits until the background process has begun
  /// or failed, and returns the exit code. In the background process and in the foreground: returns
  /// nothing.
  std::optional<int> fork();
  /// Reports success to the parent, which ends, and detaches from the terminal.
  void begin();
  /// Logs to stderr, and in the background after begin() to syslog.
  Log log() const;

 private:
  const bool foreground_;
  bool in_background_ = false;
  int to_parent_ = -1;
};

}  // namespace cairn
