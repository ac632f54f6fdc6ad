#include "prefix/event_log.hpp"

#include <syslog.h>

#include "base/count.hpp"
#include "files/modes.hpp"

namespace cairn {
namespace {

constexpr std::int64_t calls_apart_us = 5'000'000;

}  // namespace

void write_to_syslog(const std::string& line) {
  ::syslog(LOG_LOCAL7 | LOG_INFO, "cairn: %s", line.c_str());
}

EventLog::EventLog(Files& files, Clock& clock, const Settings& settings, Log log, Part part,
                   LineSink to_syslog)
    : files_(files),
      clock_(clock),
      folder_{settings.prefix},
      origin_{settings.node_name, settings.job_id},
      job_name_(settings.job_name),
      text_(settings.log && settings.log_text),
      json_(settings.log_json),
      syslog_(settings.log && settings.log_syslog),
      part_(part),
      log_(std::move(log)),
      to_syslog_(std::move(to_syslog)) {}

void EventLog::started(int ranks, int nodes) {
  const std::string name = job_name_.empty() ? "" : fmt::format(", job name {}", job_name_);
  add({.name = "START",
       .note =
           fmt::format("{} on {}{}", count_text(ranks, "rank"), count_text(nodes, "node"), name),
       .ranks = static_cast<std::uint64_t>(ranks)});
}

void EventLog::happened(const std::string& name, const std::string& note) {
  add({.name = name, .note = note});
}

void EventLog::init_failed(const Error& why) {
  add({.name = "INIT_FAIL", .note = why.text, .code = std::string(name_of(why.code))});
}

void EventLog::happened(const std::string& name, const DatasetInfo& dataset,
                        std::optional<double> seconds, const std::string& note) {
  add({.name = name,
       .note = note,
       .dataset = dataset.number,
       .dataset_name = dataset.name,
       .seconds = seconds});
}

void EventLog::lost(const DatasetInfo& dataset, const std::string& why) {
  add({.name = "LOST",
       .note = why,
       .dataset = dataset.number,
       .dataset_name = dataset.name,
       .output = dataset.is_output()});
}

void EventLog::waited(const std::string& name, const DatasetInfo& dataset, double seconds,
                      const std::string& note) {
  constexpr double shortest_s = 0.001;
  if (seconds >= shortest_s) happened(name, dataset, seconds, note);
}

void EventLog::made(const std::string& name, const DatasetInfo& dataset, double seconds,
                    const std::string& place, std::string_view scheme, std::size_t set_size) {
  add({.name = name,
       .to = place,
       .dataset = dataset.number,
       .dataset_name = dataset.name,
       .scheme = std::string(scheme),
       .set_size = set_size,
       .output = dataset.is_output(),
       .seconds = seconds});
}

void EventLog::moved(const std::string& name, const std::string& from, const std::string& to,
                     const DatasetInfo& dataset, std::optional<double> seconds, std::uint64_t bytes,
                     std::uint64_t files) {
  add({.name = name,
       .kind = Event::Kind::transfer,
       .from = from,
       .to = to,
       .dataset = dataset.number,
       .dataset_name = dataset.name,
       .seconds = seconds,
       .bytes = bytes,
       .files = files});
}

void EventLog::add(const Event& event) {
  if (part_ == Part::silent || !is_on()) return;
  last_line_us_ = clock_.steady_us();
  const std::int64_t now_us = clock_.now_us();
  const std::string text = text_ || syslog_ ? text_line(event, origin_, now_us) : "";
  if (text_) append(folder_.job().log(), text);
  if (json_) append(folder_.job().json_log(), json_line(event, origin_, now_us));
  if (syslog_) to_syslog_(text);
}

void EventLog::called() {
  if (part_ == Part::silent || !json_) return;
  const std::int64_t now_us = clock_.steady_us();
  std::int64_t last_us = last_line_us_;
  if (now_us - last_us < calls_apart_us) return;
  if (!last_line_us_.compare_exchange_strong(last_us, now_us)) return;  // another thread logs it
  append(folder_.job().json_log(), json_line({.name = "CALL"}, origin_, clock_.now_us()));
}

void EventLog::write_behind(Background& background) {
  if (part_ == Part::silent || (!text_ && !json_)) return;
  behind_ = LogLines::start(background, [this](const std::string& path, const std::string& lines) {
    write(path, lines);
  });
}

/// One write for each line, or for several whole ones: lines of processes never mix.
void EventLog::append(const std::string& path, std::string line) {
  line += '\n';
  if (!behind_) return write(path, line);
  if (!behind_->add(path, std::move(line))) warn_of_trouble(path, "the directory does not answer");
}

void EventLog::write(const std::string& path, const std::string& lines) {
  if (const Status done = append_to(path, std::as_bytes(std::span(lines))); !done)
    warn_of_trouble(path, done.error().text);
}

void EventLog::warn_of_trouble(const std::string& path, const std::string& why) {
  if (has_reported_trouble_.exchange(true)) return;
  log_.warning("cannot write some lines to the log {}: {}; the run continues without them", path,
               why);
}

Status EventLog::append_to(const std::string& path, Bytes line) {
  Status done = files_.append(path, line, file_for_all);
  if (done) may_make_folder_ = false;
  if (!may_make_folder_ || done || done.error().code != Code::not_found) return done;
  CAIRN_TRY(files_.make_folder(folder_.root(), directory_for_all));
  return files_.append(path, line, file_for_all);
}

}  // namespace cairn
