// A child process of a test that does nothing. It has the open files of its parent.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

namespace cairn {

/// Lives until end() or the end of the test.
class IdleChild {
 public:
  IdleChild() : id_(::fork()) {
    while (id_ == 0) ::pause();
  }
  ~IdleChild() { end(); }
  IdleChild(const IdleChild&) = delete;
  IdleChild& operator=(const IdleChild&) = delete;

  /// -1 after end().
  pid_t id() const { return id_; }
  void end() {
    if (const pid_t child = std::exchange(id_, -1); child > 0) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }

 private:
  pid_t id_;
};

}  // namespace cairn
