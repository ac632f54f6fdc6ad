#include "tools/halt_command.hpp"

#include <charconv>

#include "base/count.hpp"
#include "base/local_time.hpp"
#include "prefix/halt_file.hpp"
#include "prefix/last_run_file.hpp"
#include "tools/report.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;
using Number = std::optional<std::int64_t>;

/// The changes of a halt record.
struct Change {
  Number checkpoints_left;
  Number exit_before_s;
  Number exit_after_s;
  Number halt_seconds;
};

// --- the values on the command line ---

/// --list and --remove allow no other options, and no value may be both set and unset.
Status check_combination(const HaltCommand& command) {
  struct Pair {
    const char* one;
    const char* other;
    bool both;
  };
  const bool sets = command.checkpoints || command.before || command.after || command.seconds ||
                    command.immediate;
  const bool unsets = command.unset_checkpoints || command.unset_before || command.unset_after ||
                      command.unset_seconds || command.unset_reason;
  const Pair pairs[] = {
      {"--list", "--remove", command.list && command.remove},
      {"--list", "what changes something", command.list && (sets || unsets)},
      {"--remove", "what sets or unsets something", command.remove && (sets || unsets)},
      {"--checkpoints", "--unset-checkpoints", command.checkpoints && command.unset_checkpoints},
      {"--before", "--unset-before", command.before && command.unset_before},
      {"--after", "--unset-after", command.after && command.unset_after},
      {"--seconds", "--unset-seconds", command.seconds && command.unset_seconds},
      {"--immediate", "--unset-reason", command.immediate && command.unset_reason},
      {"--list", "--reason", command.list && command.reason},
      {"--remove", "--reason", command.remove && command.reason}};
  for (const Pair& pair : pairs)
    if (pair.both)
      return fail(Code::bad_argument, "{} and {} exclude each other: give one of them", pair.one,
                  pair.other);
  return {};
}

Result<Number> read_count(const std::optional<std::string>& text, std::string_view option,
                          std::string_view what) {
  if (!text) return Number{};
  std::int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [read_to, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || read_to != end || value < 0 || value > largest_halt_count)
    return fail(Code::bad_argument, "{} \"{}\": give a number of {} from 0 to {}", option, *text,
                what, largest_halt_count);
  return Number{value};
}

Result<Number> read_time(const std::optional<std::string>& text, std::string_view option) {
  if (!text) return Number{};
  const auto time_s = parse_local_time(*text);
  if (!time_s) return fail(Code::bad_argument, "{}: {}", option, time_s.error().text);
  return Number{*time_s};
}

/// Any request may be withdrawn.
Status check_reason(const HaltCommand& command) {
  const std::string reason = command.reason.value_or(std::string(halt_reason::job_halted));
  if (command.unset_reason || (is_request(reason) && is_halt_reason(reason))) return {};
  return fail(Code::bad_argument,
              "--reason \"{}\": give 1 to {} printable characters of ASCII, and none of the words "
              "that the library records itself",
              reason, longest_halt_reason);
}

Result<Change> read_values(const HaltCommand& command) {
  CAIRN_TRY(check_combination(command));
  CAIRN_TRY(check_reason(command));
  Change change;
  CAIRN_ASSIGN(change.checkpoints_left,
               read_count(command.checkpoints, "--checkpoints", "checkpoints"));
  CAIRN_ASSIGN(change.exit_before_s, read_time(command.before, "--before"));
  CAIRN_ASSIGN(change.exit_after_s, read_time(command.after, "--after"));
  CAIRN_ASSIGN(change.halt_seconds, read_count(command.seconds, "--seconds", "seconds"));
  return change;
}

// --- the change ---

bool changes_condition(const HaltCommand& command) {
  return command.checkpoints || command.before || command.after || command.seconds ||
         command.unset_checkpoints || command.unset_before || command.unset_after ||
         command.unset_seconds;
}

/// The default request: stop after the next checkpoint.
bool asks_for_stop(const HaltCommand& command) {
  return command.immediate ||
         (!command.unset_reason && (command.reason || !changes_condition(command)));
}

bool takes_reason_back(const HaltCommand& command, const HaltRecord& record) {
  return command.unset_reason && (!command.reason || *command.reason == record.reason);
}

void set(Number& number, const Number& to, bool unset) {
  if (unset) number.reset();
  if (to) number = to;
}

void apply(const HaltCommand& command, const Change& change, HaltRecord& record) {
  set(record.checkpoints_left, change.checkpoints_left, command.unset_checkpoints);
  set(record.exit_before_s, change.exit_before_s, command.unset_before);
  set(record.exit_after_s, change.exit_after_s, command.unset_after);
  set(record.halt_seconds, change.halt_seconds, command.unset_seconds);
  // The library recorded what held before the change; it records it again if it still does.
  const bool outdated = changes_condition(command) && is_condition(record.reason);
  if (takes_reason_back(command, record) || outdated) {
    record.reason.clear();
    record.immediate = false;
  }
  if (!asks_for_stop(command)) return;
  if (!command.reason)
    record.reason = halt_reason::job_halted;
  else if (!is_request(record.reason))
    record.reason = *command.reason;
  record.immediate = record.immediate || command.immediate;
}

// --- what is in force ---

std::string words_for_request(const HaltRecord& record) {
  return fmt::format("{} ({})",
                     record.immediate
                         ? "at its next call of SCR_Should_exit, without another checkpoint"
                         : "after its next checkpoint",
                     record.reason);
}

std::vector<std::string> words_for(const HaltRecord& record) {
  std::vector<std::string> words;
  if (is_request(record.reason)) words.push_back(words_for_request(record));
  if (record.checkpoints_left)
    words.push_back(
        *record.checkpoints_left == 0
            ? "now: all checkpoints that it may write are written; a run that starts anyway "
              "stops after one"
            : fmt::format("after {}", count_text(*record.checkpoints_left, "more checkpoint")));
  if (record.exit_before_s)
    words.push_back(fmt::format("before {}", format_local_time(*record.exit_before_s)));
  if (record.exit_after_s)
    words.push_back(fmt::format("after its first checkpoint from {} on",
                                format_local_time(*record.exit_after_s)));
  if (record.halt_seconds)
    words.push_back(
        *record.halt_seconds == 0
            ? "not because its allocation ends (overrides SCR_HALT_SECONDS)"
            : fmt::format("{} before the end of its allocation (overrides SCR_HALT_SECONDS)",
                          count_text(*record.halt_seconds, "second")));
  return words;
}

/// The requests, and whether a run exists that they can stop.
struct Shown {
  HaltRecord record;
  RunState run = RunState::unknown;
  bool is_recorded = false;   ///< a run there has recorded its start
  std::int64_t ended_us = 0;  ///< 0: unknown
};

/// A run that died may have ended by SCR_Finalize where no file of its end could be written.
Shown with_run(HaltRecord record, const PrefixFolder& folder, Files& files, Clock& clock) {
  Shown shown{std::move(record)};
  const auto last_run = last_run_of(files, folder.prefix);
  if (last_run && *last_run) {
    shown.is_recorded = true;
    shown.run = state_of_run(files, clock, folder, **last_run);
    shown.ended_us = (*last_run)->ended_us;
  }
  const bool finalized = shown.record.reason == halt_reason::finalize_called;
  if (finalized && shown.run != RunState::runs) shown.run = RunState::ended;
  return shown;
}

std::string headline(const Shown& shown, bool stops) {
  const bool is_over = shown.run == RunState::ended || shown.run == RunState::died;
  const char* next = stops ? "the next one stops" : "nothing stops the next one";
  if (!is_over && !shown.is_recorded) return fmt::format("no run is recorded here; {}", next);
  if (!is_over) return stops ? "the job stops" : "nothing stops the job";
  const std::string when =
      shown.ended_us == 0 ? "" : fmt::format(" at {}", time_text(shown.ended_us));
  return fmt::format("no run to stop: the last one {}{}; {}", name_of(shown.run), when, next);
}

constexpr std::string_view who_stops =
    "if the program calls SCR_Should_exit, or runs with SCR_HALT_EXIT=1; any other program "
    "continues";

void add(Report& report, const HaltFile& file, const Shown& shown, bool verbose) {
  const HaltRecord& record = shown.record;
  const std::vector<std::string> conditions = words_for(record);
  const std::string summary = headline(shown, !conditions.empty());
  const std::string note = conditions.empty() ? "" : std::string(who_stops);
  Json facts = {{"prefix", file.folder().prefix}};
  facts.update(json_of(record));
  facts.update({{"run", name_of(shown.run)},
                {"ended", shown.ended_us == 0 ? Json() : Json(time_text(shown.ended_us))},
                {"file", file.folder().job().halt()},
                {"summary", summary},
                {"conditions", conditions},
                {"note", note}});
  report.facts["prefixes"].push_back(std::move(facts));
  report.line("{}{}: {}", file.folder().prefix,
              verbose ? fmt::format(" ({})", file.folder().job().halt()) : "", summary);
  for (const std::string& condition : conditions) report.line("  {}", condition);
  if (!note.empty()) report.line("  {}", note);
  if (!record.reason.empty() && !is_request(record.reason))
    report.line("  recorded by its run: {}", record.reason);
}

// --- one prefix directory ---

/// A request before the start of a job is valid. In a directory that is not the job's prefix
/// directory it has no effect.
void warn_if_unused(const PrefixFolder& folder, Files& files, const Log& log) {
  const auto there = files.info(folder.root());
  if (!there && there.error().code == Code::not_found)
    log.warning(
        "no run has left anything in {}: check that it is the prefix directory (SCR_PREFIX) of the "
        "job",
        folder.prefix);
}

Result<HaltRecord> carry_out(const HaltCommand& command, const Change& change, HaltFile& file,
                             Files& files, const Log& log) {
  CAIRN_TRY(check_prefix_folder(files, file.folder().prefix));
  warn_if_unused(file.folder(), files, log);
  if (command.remove)
    CAIRN_TRY(file.remove());
  else if (!command.list)
    CAIRN_TRY(file.update([&](HaltRecord& record) { apply(command, change, record); }));
  return file.read();
}

/// Without names, the directory that SCR_Init would use.
Result<std::vector<std::string>> prefixes_of(const HaltCommand& command, Files& files,
                                             const ProcessFacts& process, const Log& log) {
  std::vector<std::string> prefixes;
  for (const std::string& prefix : command.prefixes)
    prefixes.push_back(normalise(prefix, process.working_folder));
  if (!prefixes.empty()) return prefixes;
  CAIRN_ASSIGN(const ResolvedSettings resolved,
               read_job_settings(command.source, files, process, log));
  return std::vector<std::string>{resolved.settings.prefix};
}

Result<Report> halt(const HaltCommand& command, Files& files, Clock& clock,
                    const ProcessFacts& process, const Log& log) {
  CAIRN_ASSIGN(const Change change, read_values(command));
  CAIRN_ASSIGN(const auto prefixes, prefixes_of(command, files, process, log));
  Report report;
  report.facts["prefixes"] = Json::array();
  for (const std::string& prefix : prefixes) {
    HaltFile file(files, clock, PrefixFolder{prefix});
    const auto record = carry_out(command, change, file, files, log);
    if (record)
      add(report, file, with_run(*record, file.folder(), files, clock), command.verbose);
    else
      report.add_failure(tl::unexpected(record.error()));
  }
  return report;
}

}  // namespace

int run_halt_command(const HaltCommand& command, Files& files, Clock& clock,
                     const ProcessFacts& process, std::ostream& out, const Log& log) {
  return print_report(halt(command, files, clock, process, log), command.json, out, log,
                      {Code::bad_argument, exit_usage});
}

}  // namespace cairn
