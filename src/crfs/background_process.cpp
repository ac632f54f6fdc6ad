#include "crfs/background_process.hpp"

#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

namespace cairn {
namespace {

constexpr char begun = 'b';

/// The exit code of the process in the background, or 0 once it has begun.
int wait_for(pid_t child, int from_child) {
  char word = 0;
  if (uninterrupted([&] { return ::read(from_child, &word, 1); }) == 1 && word == begun) return 0;
  int status = 0;
  uninterrupted([&] { return ::waitpid(child, &status, 0); });
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  return code == 0 ? 1 : code;
}

}  // namespace

std::optional<int> BackgroundProcess::fork() {
  if (foreground_) return {};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    log().error("cannot create a pipe: {}", std::strerror(errno));
    return 1;
  }
  const pid_t child = ::fork();
  if (child < 0) {
    log().error("cannot start the background process: {}", std::strerror(errno));
    return 1;
  }
  if (child > 0) {
    ::close(ends[1]);
    return wait_for(child, ends[0]);
  }
  ::close(ends[0]);
  to_parent_ = ends[1];
  ::setsid();
  return {};
}

void BackgroundProcess::begin() {
  if (to_parent_ < 0) return;
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    (void)::dup2(nothing, standard);
  ::close(nothing);
  (void)::chdir("/");
  ::openlog("crfs", LOG_PID, LOG_DAEMON);
  in_background_ = true;
  (void)uninterrupted([&] { return ::write(to_parent_, &begun, 1); });
  ::close(to_parent_);
  to_parent_ = -1;
}

Log BackgroundProcess::log() const {
  if (in_background_)
    return Log([](Severity, const std::string& text) { ::syslog(LOG_ERR, "%s", text.c_str()); });
  return Log([](Severity, const std::string& text) {
    const std::string line = "crfs: " + text + "\n";
    (void)!::write(STDERR_FILENO, line.data(), line.size());
  });
}

}  // namespace cairn
