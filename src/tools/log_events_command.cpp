#include "tools/log_events_command.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "prefix/event_log.hpp"
#include "tools/exit_codes.hpp"

namespace cairn {
namespace {

using Json = nlohmann::json;

Status add_line(const std::string& line, EventLog& events) {
  const Json told = Json::parse(line, nullptr, false);
  if (!told.is_object() || !told.contains("event"))
    return fail(Code::bad_argument, "log-events takes lines of JSON with an event each, not {}",
                line);
  std::optional<double> seconds;
  if (told.contains("seconds")) seconds = told["seconds"].get<double>();
  events.happened(told["event"].get<std::string>(), DatasetInfo{}, seconds, told.value("note", ""));
  return {};
}

Status add_lines(const Settings& settings, Files& files, Clock& clock, std::istream& in,
                 const Log& log) {
  EventLog events(files, clock, settings, log, EventLog::Part::writer);
  if (!settings.enable || !events.is_on()) return {};
  for (std::string line; std::getline(in, line);) CAIRN_TRY(add_line(line, events));
  return {};
}

}  // namespace

int run_log_events_command(const JobSettingsSource& source, Files& files, Clock& clock,
                           const ProcessFacts& process, std::istream& in, const Log& log) {
  // The commands that are started by users warn of settings, once is enough.
  const auto resolved = read_job_settings(source, files, process, Log());
  const Status done = resolved ? add_lines(resolved->settings, files, clock, in, log)
                               : Status(tl::unexpected(resolved.error()));
  if (!done) log.error("{}", done.error().text);
  return done ? exit_ok : exit_failure;
}

}  // namespace cairn
