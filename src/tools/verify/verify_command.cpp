#include "tools/verify/verify_command.hpp"

#include <algorithm>
#include <array>

#include "base/count.hpp"
#include "base/units.hpp"
#include "records/state_words.hpp"
#include "recovery/dead_caches.hpp"
#include "tools/advice.hpp"
#include "tools/cache_state.hpp"
#include "tools/report.hpp"
#include "tools/verify/verify_places.hpp"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Verified& found) {
  return {{"place", found.place},
          {"number", found.number},
          {"name", found.name},
          {"uuid", found.uuid},
          {"ranks", found.ranks},
          {"files", found.files},
          {"bytes", found.bytes},
          {"state", name_of(found.state)},
          {"only_written", found.is_only_written},
          {"bad", found.bad},
          {"reasons", found.reasons},
          {"repaired", found.repaired},
          {"replaced_by", found.replaced_by},
          {"passed_over", found.passed_over}};
}

/// Behind another part of a message.
std::string text_of_repair(const Verified& found, std::string_view word = "") {
  return found.repaired.empty() ? "" : fmt::format("; {}{}", word, found.repaired);
}

std::string what_of(const Verified& found) {
  switch (found.state) {
    case Verified::State::good:
      return fmt::format("good: {} in {}{}", format_bytes(found.bytes),
                         count_text(found.files, "file"), text_of_repair(found));
    case Verified::State::repairable:
      return "damaged, can be repaired: give --repair";
    case Verified::State::repaired:
      return "was damaged, is repaired: " + found.repaired;
    case Verified::State::changed:
      return std::string("DAMAGED, and can be repaired once the changed files are moved away") +
             text_of_repair(found);
    case Verified::State::lost:
      return std::string("DAMAGED, CANNOT BE REPAIRED from what is visible here") +
             text_of_repair(found, "but ");
    case Verified::State::replaced:
      return fmt::format(
          "{}, and CANNOT BE RESTORED: {}; cairn index drop removes it from the list",
          words_of(PrefixState::replaced).sentence, cause_of_replacement(found.replaced_by));
    case Verified::State::incomplete:
      return fmt::format("{}; a restart removes it", words_of(CacheState::incomplete).reason);
    case Verified::State::newer_format:
      return fmt::format("was not read: {}", words_of(CacheState::newer_format).reason);
    case Verified::State::written:
      return fmt::format(
          "its bytes were not verified, because it has no checksums yet; {} in {} have the sizes "
          "and times with which they were written",
          format_bytes(found.bytes), count_text(found.files, "file"));
    case Verified::State::unreadable:
      return fmt::format("unknown, because a record {}: verify it again later",
                         words_of(PrefixState::unreadable).sentence);
  }
  return "";
}

void add(Report& report, const Verified& found) {
  report.facts["datasets"].push_back(json_of(found));
  report.line("{} in {}: {}", dataset_label(found.number, found.name), found.place, what_of(found));
  report.some_lines("  bad: ", found.bad);
  for (const std::string& reason : found.reasons) report.line("  because {}", reason);
  if (found.is_only_written && found.state == Verified::State::lost)
    report.line("  it was {}", words_of(CacheState::written).sentence);
  else if (found.is_only_written)
    report.line("  it is {}. The next run on these nodes protects it",
                words_of(CacheState::written).sentence);
  if (!found.passed_over.empty())
    report.line("  but no restart uses it: {}; cairn index quarantine --lift offers it again",
                found.passed_over);
}

struct Verification {
  std::vector<Verified> found;
  std::string nothing;             ///< what is said where nothing was found
  std::string current_damage;      ///< beside the datasets
  bool is_current_unread = false;  ///< that is why; it may be as it was written
};

/// Whatever a repair may do now.
bool is_left_damaged(Verified::State state) {
  return state == Verified::State::changed || state == Verified::State::lost ||
         state == Verified::State::replaced;
}

int exit_code_of(const Verification& all) {
  int code = all.current_damage.empty() ? exit_ok : exit_damaged;
  if (all.is_current_unread) code = exit_failure;
  for (const Verified& found : all.found) {
    if (is_left_damaged(found.state)) code = worse(code, exit_beyond_repair);
    const bool is_unknown = found.state == Verified::State::newer_format ||
                            found.state == Verified::State::written ||
                            found.state == Verified::State::unreadable;
    if (is_unknown) code = worse(code, exit_failure);
    const bool damaged =
        found.state == Verified::State::repairable || found.state == Verified::State::repaired;
    if (damaged) code = worse(code, exit_damaged);
  }
  return code;
}

/// Which names the current checkpoint.
void look_at_current(Files& files, const Settings& settings, Verification& all) {
  const auto current = read_current(files, {settings.prefix}, &all.current_damage);
  all.is_current_unread = !current;
  if (!current) all.current_damage = current.error().text;
}

Result<Verification> verify(const VerifyCommand& command, Files& files, Clock& clock,
                            const ProcessFacts& process, const Log& log) {
  Verification all;
  if (!command.caches.empty() && command.source.prefix.empty()) {
    CAIRN_ASSIGN(all.found, verify_caches(command, files, clock, log));
    all.nothing = fmt::format("there is no dataset to verify in the caches below {}",
                              fmt::join(command.caches, ", "));
  } else {
    CAIRN_ASSIGN(const FoundJob job, find_job(command.source, files, process, log));
    const Settings& settings = job.settings;
    if (command.datasets.empty()) look_at_current(files, settings, all);
    CAIRN_ASSIGN(all.found, verify_prefix(command, files, clock, settings, log));
    const JobCaches caches = caches_of_job(files, settings);
    warn_of_other_caches(caches, log);
    all.nothing = fmt::format(
        "there is no dataset to verify in {}; what is in caches is verified by {}", settings.prefix,
        verification_of(caches.used.empty() ? std::vector<std::string>{"DIR"} : caches.used));
  }
  if (all.found.empty() && !command.datasets.empty())
    return fail(Code::not_found, "there is no such dataset: {}{}; cairn explain lists the datasets",
                fmt::join(command.datasets, ", "),
                text_of_directory(files, process, command.datasets));
  return all;
}

Report report_of(const Verification& all) {
  Report report;
  report.facts = {{"datasets", Json::array()},
                  {"current_damage", all.current_damage},
                  {"note", all.found.empty() ? all.nothing : ""}};
  for (const Verified& one : all.found) add(report, one);
  if (all.found.empty()) report.line("{}", all.nothing);
  if (!all.current_damage.empty()) report.line("{}", all.current_damage);
  report.exit_code = exit_code_of(all);
  return report;
}

}  // namespace

std::string_view name_of(Verified::State state) {
  constexpr std::array<std::string_view, 10> names = {
      "good",     "repairable", "repaired",     "changed", "lost",
      "replaced", "incomplete", "newer_format", "written", "unreadable"};
  return names.at(static_cast<std::size_t>(state));
}

int run_verify_command(const VerifyCommand& command, Files& files, Clock& clock,
                       const ProcessFacts& process, std::ostream& out, const Log& log) {
  return print_report(verify(command, files, clock, process, log).map(report_of), command.json, out,
                      log);
}

}  // namespace cairn
