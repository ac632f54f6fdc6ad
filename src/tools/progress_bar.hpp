// Shows the progress of a command on a terminal.
#pragma once

#include <mutex>
#include <ostream>
#include <string>

#include "files/clock.hpp"

namespace cairn {

class ProgressBar {
 public:
  /// Shows nothing unless `shown`. `what`: what is being done.
  ProgressBar(std::ostream& out, Clock& clock, std::string what, bool shown);

  /// Sets the number of bytes done, of `all`. Any thread may call it at any rate.
  void show(std::uint64_t done, std::uint64_t all);
  /// Ends the line, so that other output begins on a line of its own.
  void end();
  double seconds() const;

 private:
  std::ostream& out_;
  Clock& clock_;
  const std::string what_;
  const bool shown_;
  const std::int64_t begun_us_;
  std::mutex mutex_;
  std::int64_t shown_us_ = 0;  ///< guarded
};

/// The same for a program: lines ". BYTES" on `out`, one every half second, and one at the end.
class ProgressLines {
 public:
  /// Shows nothing unless `shown`.
  ProgressLines(std::ostream& out, Clock& clock, bool shown);

  /// Any thread may call it at any rate.
  void show(std::uint64_t done);
  void end(std::uint64_t done);

 private:
  std::ostream& out_;
  Clock& clock_;
  const bool shown_;
  std::mutex mutex_;
  std::int64_t shown_us_;  ///< guarded
};

/// "scavenging n1: [#####     ] 512 MiB of 1 GiB, 830 MiB/s, 1 s left"
std::string progress_line(const std::string& what, std::uint64_t done, std::uint64_t all,
                          double seconds);

}  // namespace cairn
