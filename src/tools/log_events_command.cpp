#include "tools/log_events_command.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "prefix/event_log.hpp"
#include "tools/exit_codes.hpp"

namespace cairn {
namespace {

/// The events of one process of job control. If it is killed, the log still gets the end of the run
/// that it had begun.
class JobControlEvents {
 public:
  JobControlEvents(EventLog& events, Clock& clock) : events_(events), clock_(clock) {}

  Status add(const std::string& line) {
    const nlohmann::json parsed = nlohmann::json::parse(line, nullptr, false);
    if (!parsed.is_object() || !parsed.contains("event"))
      return fail(Code::bad_argument, "log-events takes lines of JSON with an event each, not {}",
                  line);
    std::optional<double> seconds;
    if (parsed.contains("seconds")) seconds = parsed["seconds"].get<double>();
    log(parsed["event"].get<std::string>(), seconds, parsed.value("note", ""));
    return {};
  }

  /// No further line comes.
  void end() {
    if (!open_run_) return;
    log("RUN_END", static_cast<double>(clock_.steady_us() - begun_us_) * 1e-6,
        *open_run_ + ": cairn run was killed");
  }

 private:
  void log(const std::string& event, std::optional<double> seconds, const std::string& note) {
    if (event == "RUN_START") {
      open_run_ = note.substr(0, note.find(" on "));
      begun_us_ = clock_.steady_us();
    } else if (event == "RUN_END") {
      open_run_.reset();
    }
    events_.happened(event, DatasetInfo{}, seconds, note);
  }

  EventLog& events_;
  Clock& clock_;
  std::optional<std::string> open_run_;  ///< "run 2"
  std::int64_t begun_us_ = 0;
};

Status add_lines(const Settings& settings, Files& files, Clock& clock, std::istream& in,
                 const Log& log) {
  EventLog events(files, clock, settings, log, EventLog::Part::writer);
  if (!settings.enable || !events.is_on()) return {};
  JobControlEvents job_control(events, clock);
  Status added;
  for (std::string line; added && std::getline(in, line);) added = job_control.add(line);
  job_control.end();
  return added;
}

}  // namespace

int run_log_events_command(const JobSettingsSource& source, Files& files, Clock& clock,
                           const ProcessFacts& process, std::istream& in, const Log& log) {
  // Logs no warnings about settings, as the commands that users start do so.
  const auto resolved = read_job_settings(source, files, process, Log());
  const Status done = resolved ? add_lines(resolved->settings, files, clock, in, log)
                               : Status(tl::unexpected(resolved.error()));
  if (!done) log.error("{}", done.error().text);
  return done ? exit_ok : exit_failure;
}

}  // namespace cairn
