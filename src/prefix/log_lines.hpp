// Lines of a log on their way to files in the prefix directory, which may hang.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "files/background.hpp"

namespace cairn {

/// A thread writes the lines. A caller that adds one waits until it is written, so that the log is
/// exact even if the process is killed next, but not longer than a short time: while the directory
/// does not answer, no call waits for it.
class LogLines {
 public:
  /// Appends text of whole lines to a file.
  using Write = std::function<void(const std::string& path, const std::string& text)>;

  /// Null where there is no thread for it. `background` must outlive it.
  static std::unique_ptr<LogLines> start(Background& background, Write write);
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;
  /// Returns when all lines are written.
  ~LogLines();

  /// Thread-safe. `line` ends with a newline. False if too many are waiting: it is lost.
  bool add(const std::string& path, std::string line);
  /// Thread-safe. Waits a second at most; true if all lines are written.
  bool wait_until_written();

 private:
  struct Text {
    std::string path;
    std::string lines;
  };

  explicit LogLines(Write write) : write_(std::move(write)) {}
  std::int64_t write_next();

  const Write write_;
  std::mutex mutex_;
  std::condition_variable added_;
  std::condition_variable written_;
  std::deque<Text> waiting_;  ///< guarded by mutex_, as all below
  std::size_t waiting_bytes_ = 0;
  std::uint64_t lines_added_ = 0;
  std::uint64_t lines_written_ = 0;
  bool is_slow_ = false;  ///< a line was not written in time: no call waits until all are
  bool is_closing_ = false;
  std::unique_ptr<Repeated> thread_;  ///< the last member: it uses the others
};

}  // namespace cairn
