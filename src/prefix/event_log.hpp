// The log of a job: what its runs have done, in its prefix directory and in the system's log.
#pragma once

#include <atomic>

#include "base/error.hpp"
#include "base/log.hpp"
#include "config/settings.hpp"
#include "files/clock.hpp"
#include "files/files.hpp"
#include "prefix/log_lines.hpp"
#include "prefix/prefix_folder.hpp"
#include "records/dataset_info.hpp"
#include "records/event.hpp"

namespace cairn {

/// Where lines for the system's log go.
using LineSink = std::function<void(const std::string&)>;

/// Facility LOCAL7, level INFO.
void write_to_syslog(const std::string& line);

/// Local. If the log cannot be written, warns once, and the run goes on without it.
class EventLog {
 public:
  enum class Part { writer, silent };

  /// One process of a run is its writer. All that is passed by reference must outlive this.
  EventLog(Files& files, Clock& clock, const Settings& settings, Log log, Part part,
           LineSink to_syslog = write_to_syslog);

  /// That it cannot be written need not be logged: the user knows that, and why.
  void keep_quiet_about_trouble() { has_reported_trouble_ = true; }

  /// From here on a thread writes the lines, if there is one: no call waits long for a directory
  /// that does not answer. `background` must outlive this.
  void write_behind(Background& background);

  /// Local. Waits a second at most. False if some lines are not written: the directory hangs.
  bool wait_until_written() { return !behind_ || behind_->wait_until_written(); }

  /// By the settings, the same for all parts: events are written somewhere.
  bool is_on() const { return text_ || json_ || syslog_; }

  /// START.
  void started(int ranks, int nodes);
  void happened(const std::string& name, const std::string& note = {});
  /// INIT_FAIL.
  void init_failed(const Error& why);
  void happened(const std::string& name, const DatasetInfo& dataset,
                std::optional<double> seconds = {}, const std::string& note = {});
  /// LOST. `why` is what could not be repaired.
  void lost(const DatasetInfo& dataset, const std::string& why);
  /// The program has waited, at least for a millisecond: ASYNC_FLUSH_WAIT or PROTECT_WAIT. Without
  /// a dataset the note says for what.
  void waited(const std::string& name, const DatasetInfo& dataset, double seconds,
              const std::string& note = {});
  /// A dataset is now in `place`: in the prefix directory without a scheme, else protected by one
  /// over sets of so many ranks.
  void made(const std::string& name, const DatasetInfo& dataset, double seconds,
            const std::string& place, std::string_view scheme, std::size_t set_size);
  /// `bytes` and `files` over all ranks; no seconds where it was not one run that moved them.
  void moved(const std::string& name, const std::string& from, const std::string& to,
             const DatasetInfo& dataset, std::optional<double> seconds, std::uint64_t bytes,
             std::uint64_t files);
  /// The application has called: CALL, in JSON only, for a reader that takes a silent run for a
  /// hung one
  /// (`cairn run --hung-after`); none within 5 s of another line. By any thread.
  void called();

 private:
  void add(const Event& event);
  void append(const std::string& path, std::string line);
  void write(const std::string& path, const std::string& lines);
  void warn_of_trouble(const std::string& path, const std::string& why);
  Status append_to(const std::string& path, Bytes line);

  Files& files_;
  Clock& clock_;
  PrefixFolder folder_;
  EventOrigin origin_;
  std::string job_name_;  ///< SCR_JOB_NAME; may be empty
  bool text_;
  bool json_;
  bool syslog_;
  Part part_;
  Log log_;
  LineSink to_syslog_;
  std::atomic<bool> has_reported_trouble_ = false;
  /// Not when a line is written: if the folder is missing later, another directory is at its path.
  std::atomic<bool> may_make_folder_ = true;
  std::atomic<std::int64_t> last_line_us_ = 0;  ///< of steady time
  std::unique_ptr<LogLines> behind_;            ///< the last member: it uses the others
};

}  // namespace cairn
