#include "session/halting.hpp"

#include <algorithm>

#include "base/local_time.hpp"
#include "prefix/is_prefix_used.hpp"

namespace cairn {
namespace {

using Cause = std::optional<HaltCause>;

constexpr std::int64_t us_per_s = 1'000'000;
/// What a program needs, after it has waited for its copies, to be gone.
constexpr std::int64_t needed_to_end_us = 10 * us_per_s;

Cause cause_of_request(const HaltRecord& record) {
  if (!is_request(record.reason)) return std::nullopt;
  return HaltCause{record.reason, record.reason == halt_reason::job_halted
                                      ? "a user asked for it with \"cairn halt\""
                                      : "its halt file asks for it"};
}

Cause cause_of_count(const HaltRecord& record) {
  if (!record.checkpoints_left || *record.checkpoints_left > 0) return std::nullopt;
  return HaltCause{halt_reason::no_checkpoints_left,
                   "it has made the last checkpoint that was asked for"};
}

/// Behind a time that is not to be reached.
std::string kept_for_stopping(std::int64_t halt_s) {
  return halt_s == 0 ? "" : fmt::format(", and the run should stop {} s earlier", halt_s);
}

Cause cause_of_times(const HaltRecord& record, std::int64_t halt_s, std::int64_t now_s) {
  if (record.exit_before_s && now_s >= *record.exit_before_s - halt_s)
    return HaltCause{
        halt_reason::exit_before_time,
        fmt::format("it must end before {}{}", format_local_time(*record.exit_before_s),
                    kept_for_stopping(halt_s))};
  if (record.exit_after_s && now_s >= *record.exit_after_s)
    return HaltCause{halt_reason::exit_after_time,
                     fmt::format("it is past {}", format_local_time(*record.exit_after_s))};
  return std::nullopt;
}

Cause cause_of_allocation(std::int64_t end_s, std::int64_t halt_s, std::int64_t now_s) {
  if (end_s == 0 || halt_s == 0 || now_s < end_s - halt_s) return std::nullopt;
  return HaltCause{halt_reason::time_limit,
                   fmt::format("its allocation ends at {}{}", format_local_time(end_s),
                               kept_for_stopping(halt_s))};
}

/// Conditions of the file; the end of the allocation comes from the settings and is there in every
/// run.
bool is_of_file(std::string_view reason) { return reason != halt_reason::time_limit; }

void count_down(HaltRecord& record, std::int64_t checkpoints) {
  if (record.checkpoints_left)
    record.checkpoints_left = std::max<std::int64_t>(0, *record.checkpoints_left - checkpoints);
}

}  // namespace

Cause halt_cause(const HaltRecord& record, const Settings& settings, std::int64_t now_s) {
  const std::int64_t halt_s = record.halt_seconds.value_or(settings.halt_seconds);
  Cause cause = cause_of_request(record);
  if (!cause) cause = cause_of_count(record);
  if (!cause) cause = cause_of_times(record, halt_s, now_s);
  if (!cause) cause = cause_of_allocation(settings.end_time_s, halt_s, now_s);
  return cause;
}

std::int64_t time_for_copies_us(const HaltRecord& record, const Settings& settings,
                                std::int64_t now_us) {
  std::int64_t shortest_us = -1;
  const auto allow = [&](std::int64_t us) {
    if (shortest_us < 0 || us < shortest_us) shortest_us = us;
  };
  if (settings.flush_at_end_seconds > 0) allow(settings.flush_at_end_seconds * us_per_s);
  for (const std::int64_t end_s : {settings.end_time_s, record.exit_before_s.value_or(0)}) {
    const std::int64_t left_us = end_s * us_per_s - now_us;
    if (left_us > 0) allow(std::max<std::int64_t>(0, left_us - needed_to_end_us));
  }
  return shortest_us;
}

void Halting::begin() {
  const HaltRecord record = read();
  const Cause cause = halt_cause(record, settings_, now_s());
  const bool stale = !record.reason.empty() && !is_request(record.reason) &&
                     (!cause || cause->reason != record.reason);
  if (stale)
    update([](HaltRecord& r) {
      if (!is_request(r.reason)) r.reason.clear();
    });
  look();
}

Halting::State Halting::look() {
  const HaltRecord record = read();
  const Cause cause = halt_cause(record, settings_, now_s());
  log_change(record, cause);
  if (!cause) return State::goes_on;
  return record.immediate ? State::halts_at_once : State::halts;
}

void Halting::count_checkpoint() {
  ++uncounted_;
  const HaltRecord record = read();
  if (!record.checkpoints_left) uncounted_ = 0;
  if (uncounted_ > 0) update([](HaltRecord&) {});
  look();
}

/// Records for `cairn run` that no further run is needed. A reason that is there already says more.
void Halting::end() {
  const PrefixFolder& folder = file_.folder();
  if (watch_) {
    const auto changes = watch_->end();
    watch_.reset();
    for (const HaltWatch::Change& change : changes) update(change);
  }
  if (!files_.info(folder.job().last_run()) && !is_prefix_used(files_, folder.root())) return;
  update([](HaltRecord& record) {
    if (record.reason.empty()) record.reason = halt_reason::finalize_called;
  });
}

/// As it would be if all that was to be written had been.
HaltRecord Halting::read() {
  auto record = watch_ ? watch_->last() : file_.read();
  if (!record) warn_once(record.error());
  if (watch_) warn_if_unchanged(watch_->trouble());
  HaltRecord known = record ? *std::move(record) : HaltRecord{};
  count_down(known, uncounted_);
  return known;
}

void Halting::log_change(const HaltRecord& record, const Cause& cause) {
  const std::string request =
      cause ? fmt::format("{}{}", cause->reason, record.immediate ? " at once" : "") : "";
  if (!requests_.is_news(request)) return;
  if (!cause) {
    log_.info("the request to stop was taken back: the run continues");
    return;
  }
  log_.info(
      "the run should stop {}: {} ({}){}",
      record.immediate ? "now, without another checkpoint" : "after its next checkpoint",
      cause->text, cause->reason,
      is_of_file(cause->reason)
          ? fmt::format("; to take this back: cairn halt --remove --prefix {}", settings_.prefix)
          : "");
  events_.happened("HALT", fmt::format("{}: {}", cause->reason, cause->text));
  record_reason(record, cause->reason);
}

void Halting::record_reason(const HaltRecord& record, std::string_view reason) {
  if (is_request(record.reason)) return;
  update([reason = std::string(reason)](HaltRecord& r) {
    if (!is_request(r.reason)) r.reason = reason;
  });
}

/// Subtracts as well what could not be subtracted before.
void Halting::update(std::function<void(HaltRecord&)> change) {
  const auto change_all = [change = std::move(change), made = uncounted_](HaltRecord& record) {
    count_down(record, made);
    change(record);
  };
  if (watch_) {
    uncounted_ = 0;
    return watch_->change(change_all);
  }
  const HaltChange done = file_.change(change_all);
  if (done.is_made) uncounted_ = 0;
  warn_if_unchanged(done.status);
}

/// Without a prefix directory there is no file.
void Halting::warn_if_unchanged(const Status& change) {
  if (!change && change.error().code != Code::not_found) warn_once(change.error());
}

void Halting::warn_once(const Error& error) {
  if (warned_.insert(error.text).second)
    log_.warning("{}; the run continues without it", error.text);
}

}  // namespace cairn
