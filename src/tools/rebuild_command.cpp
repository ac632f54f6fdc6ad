#include "tools/rebuild_command.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/count.hpp"
#include "base/units.hpp"
#include "recovery/dead_caches.hpp"
#include "recovery/rebuild_sets.hpp"
#include "tools/exit_codes.hpp"

namespace cairn {
namespace {

std::string_view name_of(Rebuild::Outcome outcome) {
  switch (outcome) {
    case Rebuild::Outcome::whole:
      return "whole";
    case Rebuild::Outcome::lost:
      return "lost";
    case Rebuild::Outcome::uncommitted:
      return "uncommitted";
    case Rebuild::Outcome::newer:
      return "newer";
    case Rebuild::Outcome::failed:
      return "failed";
  }
  return "";
}

struct Report {
  const Remains* remains;
  Rebuild rebuild;
  double seconds = 0;
};

std::string line_of(const Report& report) {
  const Remains& remains = *report.remains;
  const std::string name = remains.name.empty() ? "" : fmt::format(" ({})", remains.name);
  std::string what = describe(report.rebuild.account);
  switch (report.rebuild.outcome) {
    case Rebuild::Outcome::whole:
      what = what.empty() ? "whole" : fmt::format("whole now: {}", what);
      break;
    case Rebuild::Outcome::lost:
      what = fmt::format("cannot be rebuilt: {}", report.rebuild.reason);
      break;
    case Rebuild::Outcome::failed:
      what = fmt::format("could not be rebuilt this time: {}", report.rebuild.reason);
      break;
    case Rebuild::Outcome::uncommitted:
    case Rebuild::Outcome::newer:
      what = fmt::format("left alone: {}", report.rebuild.reason);
      break;
  }
  return fmt::format("dataset {}{} of {}: {}; took {}", remains.number, name,
                     count_text(remains.ranks, "rank"), what, format_seconds(report.seconds));
}

nlohmann::ordered_json json_of(const Report& report) {
  const RestoreAccount& account = report.rebuild.account;
  std::vector<std::string> folders;
  for (const RankFolder& folder : report.rebuild.folders) folders.push_back(folder.path);
  return {
      {"number", report.remains->number},           {"name", report.remains->name},
      {"uuid", text_of(report.remains->uuid)},      {"ranks", report.remains->ranks},
      {"outcome", name_of(report.rebuild.outcome)}, {"reason", report.rebuild.reason},
      {"rebuilt_ranks", account.rebuilt_ranks},     {"repaired_blocks", account.repaired_blocks},
      {"repaired_bytes", account.repaired_bytes},   {"folders", folders}};
}

Report rebuild(Files& files, const Remains& remains, const std::string& spare_root,
               const Log& log) {
  const auto begin = std::chrono::steady_clock::now();
  Rebuild rebuilt = rebuild_remains(files, remains, spare_root, Settings{}, log);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return {&remains, std::move(rebuilt), taken.count()};
}

Result<std::vector<Remains>> find_wanted(const RebuildCommand& command, Files& files,
                                         const Log& log, const std::vector<std::string>& caches) {
  std::vector<std::string> unreadable;
  CAIRN_ASSIGN(std::vector<Remains> found,
               find_remains(files, caches, RecordDetail::outline, &unreadable));
  for (const std::string& trouble : unreadable) log.warning("it counts as missing: {}", trouble);
  std::erase_if(found, [&](const Remains& remains) {
    return !is_wanted(command.datasets, remains.uuid, remains.number, remains.name);
  });
  if (!found.empty()) return found;
  if (!command.datasets.empty())
    return fail(Code::not_found, "there is no dataset {} in the caches below {}",
                command.datasets.front(), command.folder);
  return fail(Code::not_found,
              "there are no datasets below {}; name a directory that holds the caches of the nodes "
              "(<store>/<user>/cairn.<job>.<id>), or copies of them",
              command.folder);
}

Status rebuild_all(const RebuildCommand& command, Files& files, const Log& log,
                   const std::vector<Remains>& wanted, std::vector<Report>& reports) {
  const std::string spare_root = command.folder + "/rebuilt";
  CAIRN_TRY(files.make_folder(spare_root, 0700));
  for (const Remains& remains : wanted) reports.push_back(rebuild(files, remains, spare_root, log));
  CAIRN_ASSIGN(const auto made, files.list(spare_root));
  return made.empty() ? files.remove_folder(spare_root) : Status{};
}

Status carry_out(const RebuildCommand& command, Files& files, Clock& clock, const Log& log,
                 std::vector<Remains>& wanted, std::vector<Report>& reports) {
  std::vector<std::string> caches;
  CAIRN_TRY(find_caches(files, command.folder, caches, log));
  CAIRN_ASSIGN(const auto locks, lock_caches(files, clock, caches));
  CAIRN_ASSIGN(wanted, find_wanted(command, files, log, caches));
  return rebuild_all(command, files, log, wanted, reports);
}

}  // namespace

int run_rebuild_command(const RebuildCommand& command, Files& files, Clock& clock,
                        std::ostream& out, const Log& log) {
  std::vector<Remains> wanted;
  std::vector<Report> reports;
  const Status done = carry_out(command, files, clock, log, wanted, reports);
  if (!done) log.error("{}", done.error().text);
  if (command.json) {
    auto datasets = nlohmann::ordered_json::array();
    for (const Report& report : reports) datasets.push_back(json_of(report));
    const nlohmann::ordered_json all = {{"datasets", std::move(datasets)}};
    // JSON is UTF-8 and a path need not be.
    out << all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else {
    for (const Report& report : reports) out << line_of(report) << "\n";
  }
  out << std::flush;
  if (!done && done.error().code == Code::busy) return exit_try_again;
  const bool good = std::all_of(reports.begin(), reports.end(), [](const Report& report) {
    return report.rebuild.outcome == Rebuild::Outcome::whole ||
           report.rebuild.outcome == Rebuild::Outcome::uncommitted;
  });
  return done && good && out ? exit_ok : exit_failure;
}

}  // namespace cairn
