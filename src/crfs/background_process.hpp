// A command that goes on in the background when it has begun well.
#pragma once

#include <optional>

#include "base/log.hpp"
#include "files/descriptor.hpp"

namespace cairn {

class BackgroundProcess {
 public:
  explicit BackgroundProcess(bool foreground) : foreground_(foreground) {}

  /// Before any thread is started. In the process that was called: waits until the one in the
  /// background has begun or failed, and tells the exit code. In the other one, and in the
  /// foreground: nothing.
  std::optional<int> fork();
  /// All is well: the process that was called may end, and the terminal is left alone.
  void begin();
  /// To stderr; in the background, once it has begun, to the system's log.
  Log log() const;

 private:
  const bool foreground_;
  bool in_background_ = false;
  int to_parent_ = -1;
};

}  // namespace cairn
